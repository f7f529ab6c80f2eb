from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.intents.entity import MAX_ENTITIES, extract_entities

TODAY = date(2026, 11, 29)


def _found(text: str, language: str = "zh") -> list[tuple[str, str, str | float]]:
    entities = extract_entities(text, language=language, today=TODAY)
    return [(str(entity.kind), entity.text, entity.value) for entity in entities]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("订单号2025021301处理了吗", "2025021301"),
        ("订单号是：A123", "A123"),
        ("订单 20250213 到哪了", "20250213"),
        ("2025021301这个订单呢", "2025021301"),
        ("check the status of order 10086", "10086"),
        ("order number is SO-2025-001", "SO-2025-001"),
        ("what about #A-10086", "A-10086"),
        ("Order 12345. Thanks", "12345"),
    ],
)
def test_an_order_number_is_known_by_its_words(text, number):
    assert _found(text) == [("order_number", number, number)]


@pytest.mark.parametrize(
    "text",
    [
        "order 2 pizzas",
        "order 256GB model",
        "快递单号SF1234567890123",
        "尾号5566的订单",
        "order status",
        "查一下订单2024年的发票",
        "订单 2024 年的发票",
        "满300减50",
    ],
)
def test_other_numbers_are_no_order_numbers(text):
    assert _found(text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [("订单88291月底能到吗", "88291"), ("订单 A88291 日常送达", "A88291"), ("订单88291年前能到吗", "88291")],
)
def test_what_stands_behind_a_longer_number_makes_it_no_year(text, number):
    assert [value for kind, _, value in _found(text) if kind == "order_number"] == [number]


@pytest.mark.parametrize(
    ("text", "language", "written", "number"),
    [
        ("我的手机号是13812345678，谢谢", "zh", "13812345678", "+8613812345678"),
        ("电话１３８１２３４５６７８", "zh", "１３８１２３４５６７８", "+8613812345678"),
        ("call (650) 253-0000 please", "en", "(650) 253-0000", "+16502530000"),
        ("my phone is 13812345678", "en", "13812345678", "+8613812345678"),
        ("call +44 20 8366 1177", "fr", "+44 20 8366 1177", "+442083661177"),
    ],
)
def test_phone_numbers_become_international(text, language, written, number):
    assert _found(text, language) == [("phone", written, number)]


@pytest.mark.parametrize(
    ("text", "written", "value"),
    [
        ("花了200元", "200元", 200.0),
        ("一共2,999.00", "2,999.00", 2999.0),
        ("¥200", "¥200", 200.0),
        ("￥２００", "￥２００", 200.0),
        ("only $20.50 left", "$20.50", 20.5),
        ("才20块", "20块", 20.0),
        ("２，９９９元", "２，９９９元", 2999.0),
        ("预算2.5万元", "2.5万元", 25000.0),
        ("about 20 dollars", "20 dollars", 20.0),
        ("到200，300元也行", "300元", 300.0),
    ],
)
def test_amounts_are_numbers_in_the_unit_written(text, written, value):
    assert _found(text) == [("amount", written, value)]


def test_dates_are_written_as_iso():
    assert _found("2025-03-01 下的单") == [("date", "2025-03-01", "2025-03-01")]


def test_of_overlapping_readings_the_longest_wins():
    assert _found("订单20250301花了20250301元") == [
        ("order_number", "20250301", "20250301"),
        ("amount", "20250301元", 20250301.0),
    ]


def test_an_order_number_that_looks_like_a_phone_number_is_an_order_number():
    assert _found("订单13812345678") == [("order_number", "13812345678", "13812345678")]


def test_entities_beyond_the_limit_are_ignored():
    assert len(_found("20元。" * 100)) == MAX_ENTITIES


FRAGMENTS = st.sampled_from(
    [
        "订单号",
        "#",
        "1234",
        "13812345678",
        "，",
        ",",
        "¥",
        "元",
        "2025-02-30",
        "周五",
        "next ",
        "friday",
        "３",
        " ",
        "万",
        "天前",
    ]
)


@given(
    st.lists(FRAGMENTS, max_size=25).map("".join) | st.text(max_size=80),
    st.sampled_from(["zh", "en"]),
    st.dates(),
)
def test_entities_are_slices_in_order_on_any_day(text, language, today):
    entities = extract_entities(text, language=language, today=today)

    edges = [edge for entity in entities for edge in (entity.start, entity.end)]
    assert edges == sorted(edges)
    assert all(entity.text == text[entity.start : entity.end] for entity in entities)


WORDS = st.lists(FRAGMENTS.filter(lambda one: not any(map(str.isdigit, one))), max_size=25).map("".join)


@given(WORDS | st.text(st.characters(exclude_categories=["Nd"]), max_size=80), st.dates())
def test_a_text_without_digits_is_read_as_if_some_stood_behind_it(text, today):
    alone, before_digits = (
        extract_entities(words, language="zh", today=today) for words in (text, f"{text}。。。7")
    )

    assert alone == before_digits
