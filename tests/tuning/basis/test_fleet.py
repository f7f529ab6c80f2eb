"""Rows become agents in a live view in which nobody grows silent."""

from dataclasses import replace

import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.registry.agent import Liveness
from dispatcher.tuning.basis.dataset import read_dataset
from dispatcher.tuning.basis.fleet import StandingStill, fleet, live_view
from tests.tuning.sets import shop


@pytest.fixture
def rows(tmp_path):
    return read_dataset(shop(tmp_path)).agents


def test_replicas_are_agents_of_one_group(rows):
    view = live_view(fleet(rows, replicas=3).agents)

    assert len(view.agents()) == 9
    assert len(view.group(Capability("order"))) == 3
    assert {view.status(agent.agent_id).liveness for agent in view.agents()} == {Liveness.ALIVE}
    assert {view.status(agent.agent_id).load for agent in view.agents()} == {0.0}
    assert view.contracts.keys() == rows.keys()


def test_a_twin_is_one_more_agent_with_the_same_texts_under_another_name(rows):
    made = fleet(rows, twins=2)

    names = [agent.declaration.capabilities[0].name for agent in made.agents]
    assert names == ["order", "order.0.twin", "refund", "refund.1.twin", "weather"]
    assert [made.stands_for[Capability(name)] for name in names] == [
        "order",
        "order",
        "refund",
        "refund",
        "weather",
    ]
    examples = [agent.declaration.capabilities[0].examples for agent in made.agents]
    assert examples[0] == examples[1] != examples[2]


def test_the_longest_names_have_twins_too(rows):
    longest = Capability("n" * 64)

    made = fleet({longest: rows[Capability("order")]}, twins=1)

    assert set(made.stands_for.values()) == {longest}
    assert len(made.stands_for) == 2


async def test_time_stands_still():
    clock = StandingStill()

    await clock.sleep(1000)

    assert clock.monotonic() == clock.monotonic() == 0


def test_what_no_declaration_can_hold_is_one_sentence(rows):
    name = Capability("order")
    many = replace(rows[name], examples=tuple(f"secret {at}" for at in range(21)))

    with pytest.raises(
        ConfigurationError, match=r"'order' can't be declared: examples: .* at most 20"
    ) as raised:
        fleet({name: many})
    assert "secret" not in raised.value.message
