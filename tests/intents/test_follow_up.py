from datetime import date

import pytest

from dispatcher.intents.entity import extract_entities
from dispatcher.intents.follow_up import FREE_CHARACTERS, fill

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
