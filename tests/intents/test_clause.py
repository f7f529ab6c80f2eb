import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.intents.clause import MAX_CLAUSES, cut_clauses, keep_strongest
from dispatcher.intents.connective import CHINESE, ENGLISH, CutKind
from dispatcher.traditional import simplified

TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            [
                "查订单",
                "order 1,000",
                "，",
                "。",
                "and",
                " ",
                "另外",
                "？",
                "hello",
                "😀",
                "3.5",
                "\n",
                "再",
                ", ",
                "(a, b)",
            ]
        ),
        max_size=40,
    ).map("".join),
)


def _texts(message: str) -> list[str]:
    return [message[clause.start : clause.end] for clause in cut_clauses(message)]


@pytest.mark.parametrize(
    ("message", "clauses"),
    [
        (
            "我上周买的手机怎么还没发货？另外现在有没有优惠？",
            ["我上周买的手机怎么还没发货", "现在有没有优惠"],
        ),
        ("查快递，顺便开发票", ["查快递", "开发票"]),
        ("黑色、白色都有货吗", ["黑色", "白色都有货吗"]),
        ("我要退款 快递到哪了", ["我要退款", "快递到哪了"]),
        ("第一件事\n第二件事", ["第一件事", "第二件事"]),
        ("where is my parcel, and what is your policy?", ["where is my parcel", "what is your policy"]),
        ("track it as well as refund it", ["track it", "refund it"]),
        ("Stop. Also, play music!", ["Stop", "play music"]),
        ("退款！！！！换货", ["退款", "换货"]),
    ],
)
def test_a_message_is_cut_at_punctuation_and_connectives(message, clauses):
    assert _texts(message) == clauses


@pytest.mark.parametrize(
    "message",
    [
        "it costs 1,000 dollars or 3.5 euros at 12:30",
        "open https://example.com/a,b;c?d=1 now",
        "write to anna.smith@example.com now",
        "order SO-2025-001 is late",
        "ask Dr. Smith at 5 p.m. today",
        "talk to No. 7",
        "translate “你好，再见” into English",
        'translate "go home, and then sleep" into Chinese',
        "the phone (black, 256GB) is late",
        "付了１，０００元",
        "再见",
        "我并不想退",
        "the band sandwich",
    ],
)
def test_numbers_addresses_quotes_and_parts_of_words_stay_whole(message):
    assert _texts(message) == [message]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("a b. And c d", CutKind.SENTENCE),
        ("a b, and c d", CutKind.JOINT),
        ("a b, c d", CutKind.COMMA),
        ("查快递，还有订单", CutKind.JOINT),
        ("查快递、订单", CutKind.LIST),
        ("查快递，、订单", CutKind.COMMA),
        ("a b and c d", CutKind.CONNECTIVE),
        ("退款，另外。换货", CutKind.SENTENCE),
    ],
)
def test_of_adjoining_separators_the_strongest_names_the_cut(message, kind):
    assert [clause.cut for clause in cut_clauses(message)] == [CutKind.SENTENCE, kind]


@pytest.mark.parametrize("message", ["", "   ", "？？！", "😀😀", "and"])
def test_a_message_without_content_is_one_clause(message):
    (clause,) = cut_clauses(message)

    assert (clause.start, clause.end) == (0, len(message))


@given(TEXTS)
def test_clauses_keep_the_order_and_do_not_overlap(message):
    clauses = cut_clauses(message)

    edges = [edge for clause in clauses for edge in (clause.start, clause.end)]
    assert edges == sorted(edges)
    assert edges[0] >= 0
    assert edges[-1] <= len(message)


@given(TEXTS)
def test_nothing_is_lost_between_clauses_but_connectives(message):
    words = sorted((w for group in (*ENGLISH, *CHINESE) for w in group.words), key=len, reverse=True)
    position = 0
    lost = []
    for clause in cut_clauses(message):
        lost.append(message[position : clause.start])
        position = clause.end
    lost.append(message[position:])

    for gap in lost:
        rest = re.sub(r"\d{1,2}[.、．)）]", " ", simplified(gap.lower()))
        for word in words:
            rest = rest.replace(word, " ")
        assert len(cut_clauses(message)) == 1 or not any(c.isalnum() for c in rest), gap


def test_beyond_the_limit_the_strongest_cuts_stay():
    message = "一二三四，一二三四。一二三四，一二三四。一二三四另外一二三四"

    kept = keep_strongest(cut_clauses(message), 3)

    assert [message[clause.start : clause.end] for clause in kept] == [
        "一二三四，一二三四",
        "一二三四，一二三四",
        "一二三四另外一二三四",
    ]


def test_of_equal_cuts_the_one_beside_a_short_clause_goes_first():
    message = "退款什么时候到，急，发票开给我公司"

    kept = keep_strongest(cut_clauses(message), 2)

    assert [clause.end - clause.start for clause in kept] == [7, 9]


def test_forty_wishes_become_nine_clauses_that_hold_all_of_them():
    message = "。".join(f"第{number}个愿望" for number in range(40))

    kept = keep_strongest(cut_clauses(message))

    assert len(kept) == MAX_CLAUSES
    assert (kept[0].start, kept[-1].end) == (0, len(message))


@pytest.mark.parametrize("unit", ["a, ", "“", "a.", "and ", "a@", "再", "(", "1,", "http://", "e.g.", "查 "])
def test_of_ten_thousand_characters_the_strongest_cuts_are_kept(unit):
    message = unit * (10_000 // len(unit))
    kept = keep_strongest(cut_clauses(message))

    assert len(kept) <= MAX_CLAUSES
