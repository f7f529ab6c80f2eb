"""Makes the notebooks' decisions: a simulated week of a shop's traffic through the product's own routing.

`python -m dispatcher.tuning.analysis.sample_week DATASET_DIR > notebooks/data/decisions.jsonl`

Texts, wishes and agents are the data set's. Loads, success rates, outcomes and feedback are drawn, seeded;
who was chosen, and why, is the product's doing. Numbers are rounded to five decimals, and four candidates
of other capabilities are kept instead of twenty, so that the file stays below a megabyte.
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from dispatcher import records
from dispatcher.identifiers import AgentId, Capability, RequestId
from dispatcher.registry.agent import Agent
from dispatcher.routing.decision import Candidate, Decision
from dispatcher.routing.rules import RoutingRules
from dispatcher.tuning.analysis.simulated import Condition, Said, condition, said, status_of
from dispatcher.tuning.basis.dataset import Dataset, read_dataset
from dispatcher.tuning.basis.fleet import ENVIRONMENT, MAX_LOAD, Fleet, fleet
from dispatcher.tuning.basis.product import FreshRegistry, encoding, packaged, register
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.decisions.decision_log import Entry, entry_line
from dispatcher.tuning.decisions.replay import StoredDecision
from dispatcher.tuning.evaluation.busy import CALLS, Outcomes

SEED = 20250106
MONDAY = datetime(2025, 1, 6, tzinfo=UTC)
WEEK_MS = 7 * 24 * 3_600_000
MESSAGES = 470
SEVERAL = 0.15
"""The share of messages with several wishes."""
NEIGHBOURS = 4
REPLICAS = (2, 3)
"""Agents of each capability, in turn."""
DECIMALS = 5


class Seconds:
    """Implements `dispatcher.clock.Clock`: a second passes at each look.

    So what routing remembers of agents for a moment is gone at the next message, and weeks are alike.
    """

    def __init__(self) -> None:
        self._seconds = count()

    def monotonic(self) -> float:
        """One second more than the last time."""
        return float(next(self._seconds))

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
        del seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Everything that a simulated week is drawn from; `chance` is consumed."""

    dataset: Dataset
    registry: FreshRegistry
    chance: random.Random
    count: int = MESSAGES


def sample_fleet(dataset: Dataset) -> Fleet:
    """Two or three agents of each capability, named after it."""
    full = fleet(dataset.agents, replicas=max(REPLICAS))
    kept: list[Agent] = []
    for place, capability in enumerate(dataset.agents):
        own = full.agents[place * max(REPLICAS) : (place + 1) * max(REPLICAS)]
        wanted = own[: REPLICAS[place % len(REPLICAS)]]
        kept += (replace(one, agent_id=AgentId(f"{capability}-{at}")) for at, one in enumerate(wanted, 1))
    return Fleet(agents=tuple(kept), stands_for=full.stands_for)


async def sample_week(week: Week) -> AsyncIterator[Entry]:
    """The week's decisions in order of time, for `count` messages."""
    times = sorted(week.chance.randrange(WEEK_MS) for _ in range(week.count))
    for number, time in enumerate(times):
        row = _next_row(week)
        _apply(week.registry, condition(_agents(week.registry), time, SEED))
        planned = await week.registry.plan(row.text)
        for position, decision in enumerate(week.registry.decide_all(planned)):
            yield _entry(week, row, decision, (f"sample-{number:04d}", position, time))


def _next_row(week: Week) -> RequestRow:
    rows = week.dataset.messages if week.chance.random() < SEVERAL else week.dataset.requests
    return week.chance.choice(rows)


def _agents(registry: FreshRegistry) -> Mapping[AgentId, Capability]:
    """The one capability of each agent."""
    return {
        agent.agent_id: Capability(agent.declaration.capabilities[0].name) for agent in registry.view.agents()
    }


def _apply(registry: FreshRegistry, states: Mapping[tuple[AgentId, Capability], Condition]) -> None:
    registry.view.set_open({agent: round(one.load * MAX_LOAD) for (agent, _), one in states.items()})
    registry.view.seed_outcomes(
        Outcomes(agent, capability, one.success * CALLS, (1 - one.success) * CALLS)
        for (agent, capability), one in states.items()
    )


def _entry(week: Week, row: RequestRow, decision: Decision, at: tuple[str, int, int]) -> Entry:
    request_id, position, time = at
    status = status_of(decision, week.chance)
    is_alone = row in week.dataset.requests
    judged = said(decision, row.wanted, week.chance) if is_alone else Said(None, None)
    return Entry(
        stored=StoredDecision(
            request_id=RequestId(request_id),
            position=position,
            recorded_ms=round(MONDAY.timestamp() * 1000) + time,
            decision=_rounded(decision),
        ),
        language=row.language,
        environment=ENVIRONMENT,
        status=status,
        verdict=judged.verdict,
        right_capability=judged.right,
    )


def _rounded(decision: Decision) -> Decision:
    score = None if decision.score is None else round(decision.score, DECIMALS)
    return records.replace(
        decision,
        similarity=round(decision.similarity, DECIMALS),
        score=score,
        scope_score=round(decision.scope_score, DECIMALS),
        scope_floor=round(decision.scope_floor, DECIMALS),
        candidates=tuple(_rounded_candidate(one) for one in decision.candidates),
        elapsed_ms=0.0,
    )


def _rounded_candidate(one: Candidate) -> Candidate:
    return one._replace(
        cosine=round(one.cosine, DECIMALS),
        similarity=round(one.similarity, DECIMALS),
        success=round(one.success, DECIMALS),
        headroom=round(one.headroom, DECIMALS),
        score=round(one.score, DECIMALS),
    )


async def _write(folder: Path) -> None:
    dataset = read_dataset(folder)
    product = replace(packaged(RoutingRules(neighbours_kept=NEIGHBOURS)), clock=Seconds())
    with encoding(product, 4 * MESSAGES) as encoder:
        registry = await register(product, encoder, sample_fleet(dataset))
        chance = random.Random(SEED)  # noqa: S311 - draws samples, keeps no secret
        async for entry in sample_week(Week(dataset=dataset, registry=registry, chance=chance)):
            sys.stdout.buffer.write(entry_line(entry))


def main(arguments: Sequence[str]) -> None:
    """Write the week of the data set in this folder; takes some 20 seconds."""
    asyncio.run(_write(Path(arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
