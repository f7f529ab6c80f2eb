"""A simulated week is the product's own decisions, and the same every time."""

import random
from dataclasses import replace

import pytest

from dispatcher.tuning.analysis.sample_week import MONDAY, WEEK_MS, Seconds, Week, sample_fleet, sample_week
from dispatcher.tuning.basis.dataset import read_dataset
from dispatcher.tuning.basis.product import encoding, register
from dispatcher.tuning.decisions.comparison import compare
from dispatcher.tuning.decisions.replay import Terms
from tests.tuning.sets import product, shop


@pytest.fixture
def dataset(tmp_path):
    return read_dataset(shop(tmp_path / "shop"))


async def week_of(dataset, seed=1):
    used = replace(product(), clock=Seconds())
    with encoding(used, 200) as encoder:
        registry = await register(used, encoder, sample_fleet(dataset))
        chance = random.Random(seed)
        week = Week(dataset=dataset, registry=registry, chance=chance, count=60)
        return [entry async for entry in sample_week(week)]


def test_each_capability_has_two_or_three_agents_named_after_it(dataset):
    names = [agent.agent_id for agent in sample_fleet(dataset).agents]

    assert names == ["order-1", "order-2", "refund-1", "refund-2", "refund-3", "weather-1", "weather-2"]


async def test_the_same_seed_gives_the_same_week(dataset):
    assert await week_of(dataset) == await week_of(dataset)
    assert await week_of(dataset) != await week_of(dataset, seed=2)


async def test_decisions_lie_within_the_week_and_come_out_as_recorded(dataset):
    entries = await week_of(dataset)

    start = round(MONDAY.timestamp() * 1000)
    times = [entry.stored.recorded_ms for entry in entries]
    assert times == sorted(times)
    assert start <= times[0] <= times[-1] < start + WEEK_MS
    assert compare([entry.stored for entry in entries], Terms(), Terms()).unexplained == 0


async def test_messages_of_several_wishes_are_judged_by_nobody(dataset):
    entries = await week_of(dataset)

    asked = {row.text for row in dataset.requests}
    assert any(entry.stored.position == 1 for entry in entries)
    assert all(entry.decision.text in asked for entry in entries if entry.verdict)
    assert any(entry.verdict for entry in entries)


async def test_an_agent_is_not_always_the_same(dataset):
    loads = {
        1 - one.headroom
        for entry in await week_of(dataset)
        for one in entry.decision.candidates
        if one.agent_id == "order-1"
    }

    assert len(loads) > 10
