"""What the sample agents declare, together."""

import re
from typing import Any

import pytest

from agents.faq import agent as faq
from agents.logistics import agent as logistics
from agents.order import agent as order
from agents.promotion import agent as promotion

AGENTS = (order, promotion, faq, logistics)
DEMO_PHRASES = (
    "我上周买的手机怎么还没发货",
    "现在有没有优惠",
    "where is my parcel",
    "what is your return policy",
    "how do black holes form",
)
CHINESE = re.compile(r"[\u4e00-\u9fff]")

capabilities = pytest.mark.parametrize(
    "capability",
    [capability for agent in AGENTS for capability in agent.declaration().capabilities],
    ids=lambda capability: capability.name,
)


def test_each_agent_has_one_capability_of_its_own():
    names = [capability.name for agent in AGENTS for capability in agent.declaration().capabilities]

    assert names == ["order.query", "promotion.quote", "faq.answer", "logistics.track"]


@capabilities
def test_descriptions_and_examples_come_in_both_languages(capability):
    chinese, english = capability.descriptions

    assert CHINESE.search(chinese)
    assert not CHINESE.search(english)
    assert sum(bool(CHINESE.search(example)) for example in capability.examples) >= 5
    assert sum(not CHINESE.search(example) for example in capability.examples) >= 5


@capabilities
def test_no_demo_sentence_occurs_in_them(capability):
    texts = [text.lower() for text in (*capability.descriptions, *capability.examples)]

    assert not [(phrase, text) for phrase in DEMO_PHRASES for text in texts if phrase in text]


@capabilities
def test_reading_twice_does_no_harm(capability):
    assert capability.idempotent


def test_the_discount_takes_its_amount_from_the_order():
    (quote,) = promotion.declaration().capabilities
    (query,) = order.declaration().capabilities

    takes: Any = quote.input_schema
    gives: Any = query.output_schema

    assert takes["properties"]["amount"]["x-from"] == "order.query/amount"
    assert gives["properties"]["amount"]["type"] == "number"
    assert "amount" not in takes.get("required", [])
