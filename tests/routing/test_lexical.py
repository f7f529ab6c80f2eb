"""Shared telling words count, in Chinese and English, and keys come and go by themselves."""

import numpy as np
import pytest

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.lexical import LexicalIndex, name_words, terms
from dispatcher.routing.slots import Key

PARCEL, REFUND, INVOICE = (Key(Capability(name), AgentId(name)) for name in ("parcel", "refund", "invoice"))


@pytest.fixture
def index():
    index = LexicalIndex()
    index.put(PARCEL, ["我查询快递到哪了", "where is my parcel"])
    index.put(REFUND, ["我处理退款", "I want a refund"])
    index.put(INVOICE, ["帮我开发票", "I need an invoice"])
    return index


def _best(index, text):
    return index.keys[int(index.scores([text])[0].argmax())]


def test_words_characters_and_pairs_are_terms():
    assert terms("VPN登不上 now, Order_10086") == [
        *("vpn", "登", "不", "上", "登不", "不上"),
        *("now", "order", "now order", "10086", "order 10086"),
    ]
    assert terms(" ?! ") == []


def test_a_name_says_its_words():
    assert (
        name_words("order.query") == name_words("order-query") == name_words("order_query") == "order query"
    )


def test_a_pair_of_words_tells_more_than_its_words_apart():
    index = LexicalIndex()
    index.put(PARCEL, ["bank account number"])
    index.put(REFUND, ["account bank number"])

    together, apart = index.scores(["bank account"])[0]

    assert together > apart > 0


def test_the_declaration_with_the_telling_word_scores_best(index):
    assert _best(index, "快递还没到") == PARCEL
    assert _best(index, "a refund please") == REFUND
    assert _best(index, "resend the INVOICE") == INVOICE


def test_nothing_shared_scores_nothing(index):
    assert not index.scores(["quantum", ""]).any()


def test_a_batch_gives_what_single_texts_give(index):
    texts = ["快递到哪了", "where is my refund", "发票 invoice"]

    np.testing.assert_allclose(index.scores(texts), np.concatenate([index.scores([one]) for one in texts]))


def test_changes_give_what_building_anew_gives(index):
    index.put(REFUND, ["退货 returns"])
    index.remove(PARCEL)
    index.remove(PARCEL)
    for number in range(40):
        index.put(Key(Capability("many"), AgentId(str(number))), [f"text {number}"])
        index.remove(Key(Capability("many"), AgentId(str(number))))

    anew = LexicalIndex()
    anew.put(REFUND, ["退货 returns"])
    anew.put(INVOICE, ["帮我开发票", "I need an invoice"])

    assert index.keys == anew.keys
    np.testing.assert_allclose(
        index.scores(["退货 invoice text"]), anew.scores(["退货 invoice text"]), rtol=1e-6
    )


def test_it_grows_beyond_its_first_size():
    index = LexicalIndex()
    for number in range(50):
        index.put(Key(Capability("many"), AgentId(f"{number:02d}")), [f"word{number}"])

    assert index.scores(["word33"])[0].argmax() == 33


def test_an_empty_index_has_no_columns():
    assert LexicalIndex().scores(["text"]).shape == (1, 0)
