"""Judged texts, scored by the product's own routing over a registry in memory."""

import pytest

from dispatcher.identifiers import Capability
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.rules import RoutingRules
from dispatcher.tuning.basis.fleet import fleet
from dispatcher.tuning.basis.product import encoding, product_of
from dispatcher.tuning.basis.ranked import BATCH
from dispatcher.tuning.basis.rows import AgentRow, RequestRow
from dispatcher.tuning.fitting.scored_registry import scored_registry

REFUND, TRACK = Capability("refund"), Capability("track")
AGENTS = {
    REFUND: AgentRow(
        source_id="refund",
        descriptions=("Gives money back.",),
        examples=("I want my money back", "please refund my order", "refund the shoes"),
    ),
    TRACK: AgentRow(
        source_id="track",
        descriptions=("Says where a parcel is.",),
        examples=("where is my parcel", "track my delivery", "has the parcel left"),
    ),
}


def row(text, *wanted):
    return RequestRow(text=text, language="en", wanted=frozenset(wanted))


@pytest.fixture
def product():
    return product_of(HashingEncoder(), RoutingRules())


async def scored(product, rows, twins=0):
    with encoding(product, 100) as encoder:
        registry = await scored_registry(product, encoder, fleet(AGENTS, twins=twins).agents, 5)
        return registry, await registry.score(rows)


async def test_rows_come_back_in_order_with_what_won(product):
    rows = [row("refund my shoes", REFUND), row("where is the parcel", REFUND)] * BATCH

    registry, found = await scored(product, rows)

    assert [(one.winner, one.is_right) for one in found[-2:]] == [(REFUND, True), (TRACK, False)]
    assert [one.score for one in found[:2]] == [one.score for one in found[-2:]]
    assert (registry.ground.capabilities, registry.ground.registry_version) == (2, 5)
    assert registry.own.twins == frozenset()


async def test_a_twin_that_wins_is_right_as_it_is_in_self_calibration(product):
    registry, found = await scored(product, [row("refund my shoes", REFUND), row("hello")], twins=1)

    ((one, other),) = registry.own.twins
    assert REFUND in {one, other}
    assert found[0].wanted == {one, other}
    assert found[0].is_right
    assert found[1].wanted == frozenset()
    (twin,) = {one, other} - {REFUND}
    _, (asked,) = await scored(product, [row("refund my shoes", twin)], twins=1)
    assert asked.is_right
