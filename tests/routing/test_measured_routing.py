"""Routing and refusing on the evaluation data, with the packaged encoder."""

import random
from dataclasses import dataclass
from itertools import combinations, islice

import pytest

from dispatcher.clock import SystemClock
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.router import Router
from dispatcher.routing.rules import RoutingRules

pytestmark = pytest.mark.timeout(300)
TWIN = ".twin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Counts over requests inside (to registered capabilities) and outside (to none of the set)."""

    right: int
    accepted: int
    inside: int
    accepted_outside: int
    outside: int

    def __add__(self, other: "Measured") -> "Measured":
        return Measured(
            right=self.right + other.right,
            accepted=self.accepted + other.accepted,
            inside=self.inside + other.inside,
            accepted_outside=self.accepted_outside + other.accepted_outside,
            outside=self.outside + other.outside,
        )


NOTHING = Measured(right=0, accepted=0, inside=0, accepted_outside=0, outside=0)


@pytest.fixture
def measure(rows, multilingual, directory):
    async def call(name, agents) -> Measured:
        router = Router(
            encoder=multilingual,
            directory=directory,
            make_index=FaissIndex,
            rules=RoutingRules(),
            clock=SystemClock(),
        )
        await router.sync(agents, 1)
        known = {one.name.removesuffix(TWIN) for agent in agents for one in agent.declaration.capabilities}
        evaluated = rows(f"{name}/eval.jsonl")
        inside = [row for row in evaluated if len(row["agents"]) == 1 and row["agents"][0].lower() in known]
        outside = [row for row in evaluated if not row["agents"]]
        found = await router.rank([row["text"] for row in inside])
        strange = await router.rank([row["text"] for row in outside])
        wins = [ranking.capabilities[0].capability.removesuffix(TWIN) for ranking in found]
        return Measured(
            right=sum(win == row["agents"][0].lower() for win, row in zip(wins, inside, strict=True)),
            accepted=sum(ranking.in_scope for ranking in found),
            inside=len(inside),
            accepted_outside=sum(ranking.in_scope for ranking in strange),
            outside=len(outside),
        )

    return call


def _is_good(measured: Measured) -> bool:
    return measured.accepted >= 0.9 * measured.inside and measured.accepted_outside <= 0.1 * measured.outside


async def test_the_whole_registry_accepts_its_own_and_refuses_the_rest(measure, data_agents):
    measured = await measure("shopdesk", data_agents("shopdesk"))

    assert _is_good(measured), measured
    assert measured.right >= 0.75 * measured.inside


async def test_a_registry_of_one_does(measure, data_agents):
    singles = [await measure("shopdesk", [agent]) for agent in data_agents("shopdesk")]

    assert _is_good(sum(singles, NOTHING)), singles


async def test_every_registry_of_two_taken_together_does(measure, data_agents):
    pairs = [await measure("shopdesk", pair) for pair in combinations(data_agents("shopdesk"), 2)]

    assert _is_good(sum(pairs, NOTHING))


async def test_registries_of_four_taken_together_do(measure, data_agents):
    every = combinations(data_agents("shopdesk"), 4)
    fours = [await measure("shopdesk", four) for four in islice(every, 0, None, 291)]

    total = sum(fours, NOTHING)

    # Few capabilities leave much room between them: what is refused of the own keeps strangers out.
    assert total.accepted >= 0.88 * total.inside, total
    assert total.accepted_outside <= 0.01 * total.outside, total


async def test_two_agents_of_each_capability_change_nothing(measure, data_agents):
    agents = data_agents("shopdesk") + data_agents("shopdesk", suffix="-b")

    measured = await measure("shopdesk", agents)

    assert _is_good(measured), measured


@pytest.mark.parametrize("twins", [1, 24])
async def test_twins_under_another_tag_change_nothing(measure, data_agents, twins):
    agents = data_agents("shopdesk") + data_agents("shopdesk", suffix="-t", twin=TWIN)[:twins]

    measured = await measure("shopdesk", agents)

    assert _is_good(measured), measured


async def test_many_capabilities_are_told_apart_and_the_rest_refused(measure, data_agents):
    measured = await measure("clinc150", data_agents("clinc150"))

    assert measured.right >= 0.855 * measured.inside, measured
    assert measured.accepted >= 0.9 * measured.inside, measured
    assert measured.accepted_outside <= 0.1 * measured.outside, measured


async def test_four_capabilities_with_three_examples_keep_their_own_requests(measure, data_agents):
    agents, chance = data_agents("clinc150", examples=3), random.Random(7)
    fours = [await measure("clinc150", chance.sample(agents, 4)) for _ in range(16)]

    total = sum(fours, NOTHING)

    assert total.accepted >= 0.82 * total.inside, total
    assert total.accepted_outside <= 0.06 * total.outside, total
