import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import Capability
from dispatcher.intents.clause import Clause, cut_clauses
from dispatcher.intents.decompose import RuleDecomposer, shortened, topical_clauses, with_conditions
from dispatcher.intents.plan import MAX_INTENTS, Decomposer, SpanRank
from dispatcher.intents.segment import DecomposeRules

SHOP = {
    "order": ["发货", "订单", "order", "parcel"],
    "promotion": ["优惠", "discount"],
    "faq": ["policy", "return"],
    "refund": ["退款", "refund"],
}


@pytest.fixture
def decomposer() -> Decomposer:
    return RuleDecomposer(DecomposeRules())


@pytest.mark.parametrize(
    ("message", "pieces"),
    [
        (
            "我上周买的手机怎么还没发货？另外现在有没有优惠？",
            ["我上周买的手机怎么还没发货", "现在有没有优惠"],
        ),
        (
            "Where is my parcel right now, and what is your return policy?",
            ["Where is my parcel right now", "what is your return policy"],
        ),
        ("急用！帮我查下订单，太感谢了", ["帮我查下订单"]),
        ("Hi there, can you help? My order is late. Thanks!", ["My order is late"]),
        ("I want a refund, can you help", ["I want a refund, can you help"]),
        ("what is it, the discount", ["what is it, the discount"]),
        ("你好", ["你好"]),
        ("hello. thanks!", ["hello. thanks"]),
        ("what? why?", ["what? why"]),
    ],
)
async def test_a_message_becomes_one_piece_for_each_wish(decomposer, keyword_ranker, message, pieces):
    split = await decomposer.split(message, keyword_ranker(SHOP))

    assert [piece.text for piece in split] == pieces


async def test_the_mark_of_a_sentence_says_nothing_of_its_last_clause(decomposer, keyword_ranker):
    keywords = {"order": ["parcel", "new"], "promotion": ["discount"]}

    (piece,) = await decomposer.split("where is my new parcel, and the rest?", keyword_ranker(keywords))

    assert piece.text == "where is my new parcel, and the rest"


async def test_all_spans_are_ranked_in_one_batch(decomposer, keyword_ranker):
    ranker = keyword_ranker(SHOP)

    await decomposer.split("订单。优惠。退款。", ranker)

    assert [len(batch) for batch in ranker.batches] == [6]


async def test_a_message_of_one_clause_needs_no_ranking(decomposer, keyword_ranker):
    ranker = keyword_ranker(SHOP)

    (piece,) = await decomposer.split(" 帮我查下订单。 ", ranker)

    assert (piece.text, piece.start, piece.end) == ("帮我查下订单", 1, 7)
    assert ranker.batches == []


@pytest.mark.parametrize(
    "message", ["；".join(["订单", "优惠", "退款", "policy"] * 10), "a, " * 3333, "查" * 10_000]
)
async def test_a_very_long_message_is_bounded_in_pieces_and_texts(decomposer, keyword_ranker, message):
    ranker = keyword_ranker(SHOP)
    split = await decomposer.split(message, ranker)

    assert 1 <= len(split) <= MAX_INTENTS
    assert all(
        len(batch) <= 45 and max(map(len, batch)) <= DecomposeRules().ranked_characters
        for batch in ranker.batches
    )


@given(
    st.lists(
        st.sampled_from(
            ["订单", "优惠", "refund", "and", "，", "。", "? ", "你好", "can you help", "😀", "太感谢了", " "]
        ),
        max_size=30,
    ).map("".join)
    | st.text(max_size=80),
    st.integers(0, 3),
)
async def test_pieces_are_slices_of_the_message_in_order(message, seed):
    async def rank(texts):
        return [
            SpanRank(
                capability=Capability("abcd"[(len(text) + seed) % 4]),
                score=(len(text) * 7 + seed) % 10 / 10,
                similarity=0.5,
                in_scope=(len(text) + seed) % 3 > 0,
            )
            for text in texts
        ]

    split = await RuleDecomposer(DecomposeRules()).split(message, rank)

    edges = [edge for piece in split for edge in (piece.start, piece.end)]
    assert edges == sorted(edges)
    assert 1 <= len(split) <= MAX_INTENTS
    assert all(piece.text == message[piece.start : piece.end] for piece in split)


async def test_what_is_too_long_to_be_ranked_is_ranked_by_its_beginning_and_end(decomposer, keyword_ranker):
    message = "我要退款" + "好" * 1000 + "开发票"

    (piece,) = await decomposer.split(message, keyword_ranker(SHOP))

    assert piece.text == message
    assert len(piece.ranked) == DecomposeRules().ranked_characters
    assert piece.ranked.startswith("我要退款好")
    assert piece.ranked.endswith("好开发票")


async def test_traditional_characters_are_ranked_as_simplified_ones(decomposer, keyword_ranker):
    (piece,) = await decomposer.split("查訂單", keyword_ranker(SHOP))

    assert (piece.text, piece.ranked) == ("查訂單", "查订单")


@pytest.mark.parametrize(
    ("text", "limit", "short"), [("abc", 3, "abc"), ("abcdef", 5, "ab ef"), ("abcdefgh", 4, "a gh")]
)
def test_a_shortened_text_has_the_length_that_is_allowed(text, limit, short):
    assert shortened(text, limit) == short


@pytest.mark.parametrize(
    ("message", "clauses"),
    [
        ("a, if b, c, d", ["a", "if b, c", "d"]),
        ("a, if b. c", ["a, if b", "c"]),
        ("if b. c", ["if b", "c"]),
        ("if a, if b, c", ["if a, if b, c"]),
        ("a, if b. By the way, c", ["a, if b", "c"]),
        ("a, if b by the way c", ["a, if b", "c"]),
        ("a. if b, c", ["a", "if b, c"]),
    ],
)
def test_a_condition_joins_what_follows_it_in_its_sentence_else_what_precedes_it(message, clauses):
    joined = with_conditions(message, cut_clauses(message))

    assert [message[clause.start : clause.end] for clause in joined] == clauses


class Counted(tuple[Clause, ...]):
    """Counts how often somebody goes through it."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()


def test_conditions_are_found_in_one_walk_however_many_they_are():
    """One more for each condition took seconds on a message of 64,000 characters."""
    message = "如果，走，" * 100
    clauses = Counted(cut_clauses(message))

    assert len(with_conditions(message, clauses)) == 100
    assert clauses.walks <= 2


@given(st.text(max_size=120))
def test_topical_clauses_are_in_order_and_at_least_one(message):
    clauses = topical_clauses(message)

    edges = [edge for clause in clauses for edge in (clause.start, clause.end)]
    assert clauses
    assert edges == sorted(edges)
