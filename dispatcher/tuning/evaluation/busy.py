"""Random load and success of three replicas of each agent: does that overturn what similarity decided?"""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.view import LiveView
from dispatcher.routing.decision import Outcome
from dispatcher.routing.router import Ranking
from dispatcher.tuning.basis.fleet import MAX_LOAD
from dispatcher.tuning.basis.metrics import bootstrapped, mean, share
from dispatcher.tuning.basis.product import FreshRegistry
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.routed import Figures, missing

REPLICAS = 3
SUCCESS = (8.0, 2.0)
"""Parameters of the Beta distribution that success rates are drawn from: mean 0.8."""
CALLS = 1e9
"""Weight of a drawn success rate; the prior of 20 calls is nothing beside it."""
NO_ACCEPTED = "no request inside was accepted"
ALL_ASKED = "every accepted request inside is asked back"
NOBODY_CHOSEN = "no accepted request inside got an agent"
NO_RIGHT = "no request inside with a right winner got an agent"


class Outcomes(NamedTuple):
    """Implements `dispatcher.registry.view.OutcomeCounts`."""

    agent_id: AgentId
    capability: Capability
    succeeded: float
    failed: float


class BusyChoice(NamedTuple):
    """Who was chosen for an accepted request: whether winner and chosen are of a capability asked for.

    `load` is the chosen agent's, in [0, 1]; it and `stays_right` are None where nobody could take it, or
    where the person is asked which of several near capabilities is meant.
    """

    is_right: bool
    stays_right: bool | None
    load: float | None
    is_asked_back: bool = False


def choose(
    registry: FreshRegistry, ranking: Ranking, row: RequestRow, chance: random.Random
) -> BusyChoice | None:
    """Give all agents of the ranked capabilities a random state, then decide; None where refused."""
    winner = ranking.winner
    if winner is None or not ranking.in_scope:
        return None
    _draw_states(registry.view, (one.capability for one in ranking.capabilities), chance)
    decision = registry.decide(ranking)
    is_right = registry.meant(winner.capability) in row.wanted
    if decision.agent_id is None or decision.capability is None:
        return BusyChoice(is_right, None, None, decision.outcome is Outcome.CLARIFY)
    load = registry.view.status(decision.agent_id).load
    return BusyChoice(is_right, registry.meant(decision.capability) in row.wanted, load)


def busy_figures(choices: Sequence[BusyChoice], chance: np.random.Generator) -> Figures:
    """Of accepted requests inside: who is asked back; of the others who found nobody, and the rest's choice.

    Each figure stands by itself: what one can't be made of says nothing of the next.
    """
    if not choices:
        return missing(("asked_back", "unavailable", "overturned", "mean_load"), NO_ACCEPTED)
    decided = [one for one in choices if not one.is_asked_back]
    loads = [one.load for one in decided if one.load is not None]
    kept = [one.stays_right for one in decided if one.is_right and one.stays_right is not None]
    figures = Figures(found={"asked_back": share(len(choices) - len(decided), len(choices))})
    if not decided:
        return figures | missing(("unavailable", "overturned", "mean_load"), ALL_ASKED)
    figures |= Figures(found={"unavailable": share(len(decided) - len(loads), len(decided))})
    if not loads:
        return figures | missing(("overturned", "mean_load"), NOBODY_CHOSEN)
    figures |= Figures(found={"mean_load": bootstrapped(mean, chance, loads)})
    if not kept:
        return figures | missing(("overturned",), NO_RIGHT)
    return figures | Figures(found={"overturned": share(kept.count(False), len(kept))})


def _draw_states(view: LiveView, capabilities: Iterable[Capability], chance: random.Random) -> None:
    """Load U(0, 1) of each agent, success Beta(8, 2); those of other capabilities are idle."""
    running: dict[AgentId, int] = {}
    outcomes: list[Outcomes] = []
    for capability in capabilities:
        for agent in view.group(capability):
            running[agent.agent_id] = round(chance.random() * MAX_LOAD)
            rate = chance.betavariate(*SUCCESS)
            outcomes.append(Outcomes(agent.agent_id, capability, rate * CALLS, (1 - rate) * CALLS))
    view.set_open(running)
    view.seed_outcomes(outcomes)
