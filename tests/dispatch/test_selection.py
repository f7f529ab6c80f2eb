from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.request import Task
from dispatcher.dispatch.selection import Selection
from dispatcher.identifiers import AgentId
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.decision import Decision
from dispatcher.routing.router import Query, Router
from tests.dispatch.builders import accepted, decision, intent, task_of

GROUP = ("a1", "a2", "a3")


class FirstUntried:
    """Routing and directory of three agents: the first that was not tried is chosen, else the first."""

    def decide(self, query: Query, ranking: object) -> Decision:
        return decision(next((agent for agent in GROUP if agent not in query.tried), GROUP[0]))

    def group(self, capability: str) -> Sequence[object]:
        return [SimpleNamespace(agent_id=agent, capability=lambda _: None) for agent in GROUP]


def selection() -> Selection:
    both = FirstUntried()
    return Selection(
        router=cast("Router", both),
        directory=cast("AgentDirectory", both),
        grants=lambda _: None,
        calendar=SystemClock(),
    )


def chosen(task: Task, *tried: str, only: str | None = None) -> AgentId | None:
    request, agents = accepted().request, frozenset(map(AgentId, tried))
    if only is not None:
        return selection().choose_only(AgentId(only), request, intent(0), task, agents).decision.agent_id
    return selection().choose(request, intent(0), task, agents).decision.agent_id


@pytest.mark.parametrize("agent", GROUP)
def test_of_many_agents_the_wanted_one_is_chosen(agent: str) -> None:
    assert chosen(task_of(accepted()), only=agent) == agent


def test_nobody_is_chosen_in_the_place_of_one_that_is_not_there() -> None:
    assert chosen(task_of(accepted()), only="gone") is None


@pytest.mark.parametrize(
    ("repeat", "idempotent", "agent"),
    [(0, False, "a1"), (1, True, "a1"), (1, False, "a2")],
)
def test_what_is_repeated_and_must_not_run_twice_stays_with_its_agent(
    repeat: int, idempotent: bool, agent: str
) -> None:
    task = replace(task_of(accepted()), repeat=repeat, idempotent=idempotent, agent_id=AgentId("a2"))

    assert chosen(task) == agent


def test_it_stays_there_even_after_that_agent_refused_it() -> None:
    task = replace(task_of(accepted()), repeat=1, idempotent=False, agent_id=AgentId("a1"))

    assert chosen(task, "a1") == "a1"
