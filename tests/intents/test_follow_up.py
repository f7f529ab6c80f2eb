from datetime import date

import pytest

from dispatcher.identifiers import Capability
from dispatcher.intents.entity import extract_entities
from dispatcher.intents.follow_up import (
    FREE_CHARACTERS,
    TOPIC_CHARACTERS,
    continued,
    continuing,
    fill,
    is_continued,
    is_elliptic,
    named_before,
    topic_of,
)
from dispatcher.intents.plan import Entity, EntityKind, SpanRank
from dispatcher.records import replace

SCHEMA = {
    "type": "object",
    "properties": {
        "order_number": {"type": "string"},
        "phone": {"type": "string"},
        "size": {"enum": ["S", "M", "L"]},
        "count": {"type": "integer"},
        "name": {"type": "string"},
    },
}


def filled(message: str, *fields: str, in_scope: bool = False) -> dict[str, object] | None:
    entities = extract_entities(message, language="zh", today=date(2026, 11, 30))
    return fill(SCHEMA, fields, message, entities, in_scope=in_scope)


def test_an_entity_fills_its_field_even_in_a_message_that_means_something_by_itself() -> None:
    assert filled("我的订单号是A20260001，查一下", "order_number", in_scope=True) == {
        "order_number": "A20260001"
    }


@pytest.mark.parametrize(
    ("message", "field", "value"),
    [
        (" A20260001 ", "order_number", "A20260001"),
        ("M", "size", "M"),
        ("3", "count", 3),
        ("张三", "name", "张三"),
    ],
)
def test_a_bare_answer_fills_the_only_field(message: str, field: str, value: object) -> None:
    assert filled(message, field) == {field: value}


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("XXL", ("size",)),
        ("three", ("count",)),
        ("张三", ("phone",)),
        ("张三", ("name", "size")),
        ("   ", ("name",)),
        ("好" * (FREE_CHARACTERS + 1), ("name",)),
    ],
)
def test_what_does_not_fit_is_no_answer(message: str, fields: tuple[str, ...]) -> None:
    assert filled(message, *fields) is None


def test_a_message_that_somebody_can_do_is_no_bare_answer() -> None:
    assert filled("有什么优惠", "name", in_scope=True) is None


def test_a_question_without_fields_is_answered_by_what_nobody_else_takes() -> None:
    assert filled("蓝色的那个") == {}
    assert filled("有什么优惠", in_scope=True) is None
    assert filled("蓝色的那个", "color_unknown_to_the_schema") == {}


@pytest.mark.parametrize(
    "message",
    [
        *("能修吗", "要多久", "多少钱？", "怎么用", "白色呢", "什么时候到", "那怎么退？", "能換嗎"),
        *("can you fix it", "how long does it take", "is it covered", "and the other one?"),
        *("what about white", "in the morning"),
    ],
)
def test_a_short_question_without_its_object_goes_on_with_the_topic(message: str) -> None:
    assert is_elliptic(message)
    assert continued(["快递到哪了", "我的耳机坏了"], message) == f"我的耳机坏了 {message}"


@pytest.mark.parametrize(
    "message",
    [
        *("讲个笑话", "宇宙有多大", "今天天气怎么样", "你是谁", "你在吗", "谢谢", "", "会员怎么升级"),
        *("tell me a joke", "who are you", "what is your name", "how do black holes form"),
        "can you fix it " * 4,
    ],
)
def test_what_names_its_topic_or_none_is_a_message_of_its_own(message: str) -> None:
    assert not is_elliptic(message)
    assert continued(["我的耳机坏了"], message) is None


def test_the_topic_is_the_latest_text_that_names_one() -> None:
    assert continued(["查订单", "我的耳机坏了", "能修吗", "谢谢"], "要多久") == "我的耳机坏了 要多久"
    assert continued(["谢谢", "能修吗"], "要多久") is None
    assert continued([], "要多久") is None


def test_of_a_long_topic_the_end_is_kept() -> None:
    together = continued(["很" * 1000 + "耳机坏了"], "能修吗")

    assert together is not None
    assert together.endswith("很耳机坏了 能修吗")
    assert len(together) == TOPIC_CHARACTERS + 4


def test_a_message_that_goes_on_is_ranked_behind_what_it_refers_to() -> None:
    piece = continuing(["我的耳机坏了 "], " 能修吗 ")

    assert piece is not None
    assert (piece.text, piece.start, piece.end) == (" 能修吗 ", 0, 5)
    assert piece.ranked == "我的耳机坏了  能修吗"
    assert piece.antecedent == Entity(
        kind=EntityKind.ANTECEDENT, text="我的耳机坏了", value="我的耳机坏了", start=0, end=0
    )


@pytest.mark.parametrize("message", ["给我讲个笑话", "谢谢"])
def test_any_other_message_is_no_piece_of_what_was_said(message: str) -> None:
    assert continuing(["我的耳机坏了"], message) is None
    assert continuing([], "能修吗") is None


def _named(topic: str) -> dict[EntityKind, str | float]:
    entities = extract_entities(topic, language="zh", today=date(2026, 11, 30))
    named = named_before(topic, entities)
    assert {(one.start, one.end) for one in named} <= {(0, 0)}
    return {one.kind: one.value for one in named}


def test_numbers_that_were_named_before_count_still_and_days_and_amounts_do_not() -> None:
    assert _named("昨天的订单号A20260001，200元，电话13812345678") == {
        EntityKind.ORDER_NUMBER: "A20260001",
        EntityKind.PHONE: "+8613812345678",
    }


def test_what_may_be_half_a_number_does_not_count() -> None:
    rest = "的订单怎么还没有到"
    long = f"A20260001{rest}" + "啊" * (TOPIC_CHARACTERS - 9 - len(rest))

    assert _named(f"A20260001{rest}") == {EntityKind.ORDER_NUMBER: "A20260001"}
    assert _named(long) == {}
    assert _named(f"订{long[:-1]}") == {EntityKind.ORDER_NUMBER: "A20260001"}


@pytest.mark.parametrize(
    ("texts", "topic"),
    [
        (["我的耳机坏了"], "我的耳机坏了"),
        (["my headphones are broken", "where is my parcel"], "my headphones are broken where is my parcel"),
        (["很" * 1000 + "坏"], "很" * (TOPIC_CHARACTERS - 1) + "坏"),
        (["能修吗"], None),
        (["谢谢"], None),
        ([], None),
    ],
)
def test_of_a_message_its_topic_is_kept(texts: list[str], topic: str | None) -> None:
    assert topic_of(texts) == topic


def _rank(similarity: float, *, in_scope: bool = True) -> SpanRank:
    return SpanRank(capability=Capability("a"), score=similarity, similarity=similarity, in_scope=in_scope)


def test_what_ranks_better_with_the_topic_goes_on_with_it() -> None:
    assert is_continued("能修吗", _rank(0.2, in_scope=False), _rank(0.1))
    assert is_continued("能修吗", _rank(0.8), _rank(0.9))
    assert not is_continued("能修吗", _rank(0.9), _rank(0.8))
    assert not is_continued("能修吗", _rank(0.2, in_scope=False), _rank(0.9, in_scope=False))


@pytest.mark.parametrize("message", ["what about a refund", "And the refund?", "那退款呢"])
def test_a_message_that_names_a_thing_of_its_own_begins_a_topic(message: str) -> None:
    order = replace(_rank(0.9), capability=Capability("order"))
    sure, unsure = _rank(0.6), _rank(0.4)

    assert not is_continued(message, sure, order)
    assert is_continued(message, unsure, order)
    assert is_continued(message, sure, _rank(0.9))
    assert is_continued("when will it arrive", sure, order)


@pytest.mark.parametrize(
    ("before", "message", "capability"),
    [
        ("我的耳机坏了", "能修吗", "exchange_repair"),
        ("where is my order", "what about a refund", "refund"),
        ("我的耳机坏了", "怎么退", "refund"),
        ("有没有优惠", "能叠加吗", "promo_calc"),
        ("黑色XL有货吗", "白色呢", "inventory"),
        ("where is my parcel", "when will it arrive", "logistics_track"),
        ("my headphones are broken", "is it covered", "exchange_repair"),
        ("book a flight to London", "in the morning", "travel_booking"),
    ],
)
async def test_an_elliptic_message_is_routed_by_what_was_said_before(routed, before, message, capability):
    together = continued([before], message)
    assert together is not None

    ranker = await routed("shopdesk")
    alone, joined = await ranker([message, together])
    used = joined if is_continued(message, alone, joined) else alone

    assert (used.capability, used.in_scope) == (capability, True)
