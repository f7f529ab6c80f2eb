"""What can be said against declarations before anybody asks."""

import pytest

from dispatcher.identifiers import Capability
from dispatcher.tuning.analysis.lint import agent_counts, lint
from dispatcher.tuning.analysis.overlap import Pair
from dispatcher.tuning.basis.rows import AgentRow
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, candidate, decision

GOOD = AgentRow(
    source_id="weather",
    descriptions=("I tell the weather and the air quality", "我查询天气"),
    examples=("will it rain", "is it cold", "明天会下雨吗"),
)
OTHER = AgentRow(
    source_id="order",
    descriptions=("I look up orders by number or phone", "我能查询订单状态"),
    examples=("where is my order", "order 17", "我的订单"),
)


def found(more=None, **given):
    agents = {"weather": GOOD, "order": OTHER} | (more or {})
    return {
        (one.capability, one.kind): one.detail
        for one in lint(agents, **({"replicas": dict.fromkeys(agents, 2)} | given))
    }


def test_declarations_that_are_clear_and_apart_have_no_findings():
    assert found() == {}


def test_fewer_than_three_different_examples_are_few():
    two = AgentRow(source_id="refund", descriptions=("money back",), examples=("a b", "a b", "c d"))

    assert found({"refund": two}) == {("refund", "few_examples"): "2 of 3"}


def test_a_capability_of_one_agent_has_nobody_to_take_over():
    assert found(replicas={"weather": 2, "order": 1}).keys() == {("order", "one_agent")}


@pytest.mark.parametrize("name", ["orders", "or-der", "ordeer"])
def test_a_name_nearly_like_another_is_told(name):
    more = AgentRow(source_id=name, descriptions=("something else",), examples=("p", "q", "r"))

    assert {kind for _, kind in found({name: more})} == {"near_name"}


def test_a_text_that_two_declare_is_told_however_it_is_written():
    more = AgentRow(
        source_id="track", descriptions=("parcels on their way",), examples=("Order  17!", "e", "f")
    )

    assert found({"track": more}) == {("order", "same_text"): "'order 17' is also track's"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Я показываю погоду", "Возврат денег за заказ"),
        ("天気を教えます", "返金します"),
        ("날씨를 알려요", "환불해 드려요"),
        ("🌧", "💶"),
    ],
)
def test_different_texts_of_any_script_are_not_the_same(one, other):
    agents = {
        name: AgentRow(source_id=name, descriptions=(text,), examples=(f"{name} p", f"{name} q", f"{name} r"))
        for name, text in (("rain", one), ("money", other))
    }

    assert found(agents) == {}


@pytest.mark.parametrize(
    "texts", ["Я ищу заказ по его номеру|Я ищу заказ по его имени", "注文の状況を調べます|注文の状況を調べる"]
)
def test_boilerplate_is_found_in_any_script(texts):
    first, second = texts.split("|")
    agents = {
        name: AgentRow(source_id=name, descriptions=(text,), examples=("p", "q", "r"))
        for name, text in (("find", first), ("stock", second))
    }

    assert ("stock", "boilerplate") in found(agents)


def test_a_description_made_of_others_phrases_is_boilerplate():
    more = AgentRow(
        source_id="stock",
        descriptions=("I look up orders by number or name", "我能查询订单状态和库存"),
        examples=("a", "b", "c"),
    )

    assert found({"stock": more})["stock", "boilerplate"].endswith("is said by others")
    assert ("weather", "boilerplate") not in found({"stock": more})


def test_a_description_shorter_than_a_phrase_is_no_boilerplate():
    more = AgentRow(source_id="x", descriptions=("orders",), examples=("a", "b", "c"))

    assert found({"x": more}) == {}


def test_pairs_that_win_each_others_examples_overlap():
    pairs = [
        Pair(one=Capability("order"), other=Capability("weather"), cosine=0.5, taken=2),
        Pair(one=Capability("order"), other=Capability("refund"), cosine=0.9, taken=1),
    ]

    assert found(pairs=pairs) == {("order", "overlap"): "with weather: 2 texts go to the other, cosine 0.50"}


def test_agents_are_counted_where_decisions_saw_them():
    seen = [decision(BUSY_BUT_GOOD, IDLE), decision(BUSY_BUT_GOOD, candidate("x", "order"))]

    assert agent_counts(seen) == {"refund": 2, "order": 1}
