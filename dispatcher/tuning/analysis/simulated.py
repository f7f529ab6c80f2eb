"""How the agents of a simulated week were, how tasks ended, and what people said. Pure: chance is given."""

import math
import random
from collections.abc import Mapping, Set
from typing import NamedTuple

from dispatcher.dispatch.lifecycle.judgement import Verdict
from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.decision import Decision, Outcome

HOUR_MS = 3_600_000
QUIET, BUSY = 0.25, 0.65
"""Mean load at four in the morning and at four in the afternoon."""
SWING = 0.35
"""How far one agent may be from that at any hour."""
USUAL = (18.0, 2.0)
"""Beta distribution of an agent's own success rate: mean 0.9."""
BAD_DAY, BAD_RATE = 0.08, 0.55
"""The share of agents' days on which something is broken, and the success on such a day."""
COMPLAINS, PRAISES = 0.5, 0.15
"""How often somebody says that a decision was wrong, or right."""


class Condition(NamedTuple):
    """One agent at one time; both in [0, 1]."""

    load: float
    success: float


class Said(NamedTuple):
    """Feedback, if any, and the capability that would have been right where that was said."""

    verdict: Verdict | None
    right: Capability | None


def condition(
    agents: Mapping[AgentId, Capability], time_ms: int, seed: int
) -> dict[tuple[AgentId, Capability], Condition]:
    """All agents at a time of the week, in ms from its start; the same arguments give the same."""
    hour = time_ms // HOUR_MS
    return {
        (agent, capability): Condition(
            load=_load(hour, _chance(seed, agent, "hour", hour)),
            success=_success(_chance(seed, agent), _chance(seed, agent, "day", hour // 24)),
        )
        for agent, capability in agents.items()
    }


def status_of(decision: Decision, chance: random.Random) -> str:
    """How the task of a decision ended, as the ledger calls it."""
    if decision.outcome is not Outcome.SELECTED:
        return decision.outcome.value
    chosen = next(one for one in decision.candidates if one.rejection is None)
    return "completed" if chance.random() < chosen.success else "failed"


def said(decision: Decision, wanted: Set[Capability], chance: random.Random) -> Said:
    """What somebody who wanted one of these capabilities, or nothing that there is, says of a decision."""
    is_refused = decision.outcome is Outcome.OUT_OF_SCOPE
    is_right = (is_refused and not wanted) or (not is_refused and decision.capability in wanted)
    if chance.random() >= (PRAISES if is_right else COMPLAINS):
        return Said(None, None)
    if is_right:
        return Said(Verdict.RIGHT, None)
    if not wanted:
        return Said(Verdict.OUT_OF_SCOPE, None)
    return Said(Verdict.WRONG_CAPABILITY, min(wanted))


def _load(hour: int, chance: random.Random) -> float:
    day = (1 - math.cos((hour % 24 - 4) / 24 * 2 * math.pi)) / 2
    return min(max(QUIET + (BUSY - QUIET) * day + chance.uniform(-SWING, SWING), 0.0), 1.0)


def _success(own: random.Random, today: random.Random) -> float:
    usual = own.betavariate(*USUAL)
    return BAD_RATE if today.random() < BAD_DAY else usual


def _chance(*named: object) -> random.Random:
    return random.Random(" ".join(map(str, named)))  # noqa: S311 - draws samples, keeps no secret
