"""Random load and success of three replicas of each agent: does that overturn what similarity decided?"""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.view import LiveView
from dispatcher.routing.router import Ranking
from dispatcher.tuning.basis.fleet import MAX_LOAD
from dispatcher.tuning.basis.metrics import bootstrapped, mean, share
from dispatcher.tuning.basis.product import Registry
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.verdict import Figures, missing

REPLICAS = 3
SUCCESS = (8.0, 2.0)
"""Parameters of the Beta distribution that success rates are drawn from: mean 0.8."""
CALLS = 1e9
"""Weight of a drawn success rate; the prior of 20 calls is nothing beside it."""
NAMES = ("overturned", "unavailable", "mean_load")


class Outcomes(NamedTuple):
    """Implements `dispatcher.registry.view.OutcomeCounts`."""

    agent_id: AgentId
    capability: Capability
    succeeded: float
    failed: float


class Choice(NamedTuple):
    """Who was chosen for an accepted request: whether winner and chosen are of a capability asked for.

    `load` is the chosen agent's, in [0, 1]; it and `stays_right` are None where nobody could take it.
    """

    is_right: bool
    stays_right: bool | None
    load: float | None


def choose(registry: Registry, ranking: Ranking, row: RequestRow, chance: random.Random) -> Choice | None:
    """Give all agents of the ranked capabilities a random state, then decide; None where refused."""
    winner = ranking.winner
    if winner is None or not ranking.in_scope:
        return None
    _draw_states(registry.view, (one.capability for one in ranking.capabilities), chance)
    decision = registry.decide(ranking)
    is_right = registry.meant(winner.capability) in row.wanted
    if decision.agent_id is None or decision.capability is None:
        return Choice(is_right, None, None)
    load = registry.view.status(decision.agent_id).load
    return Choice(is_right, registry.meant(decision.capability) in row.wanted, load)


def busy_figures(choices: Sequence[Choice], chance: np.random.Generator) -> Figures:
    """Of right winners: how many were overturned; of all: who found nobody; the chosen one's mean load."""
    right = [one for one in choices if one.is_right]
    loads = [one.load for one in choices if one.load is not None]
    if not right or not loads:
        return missing(NAMES, "no request inside was accepted with the right capability")
    overturned = sum(one.stays_right is False for one in right)
    return Figures(
        found={
            "overturned": share(overturned, len(right)),
            "unavailable": share(sum(one.load is None for one in choices), len(choices)),
            "mean_load": bootstrapped(mean, chance, loads),
        }
    )


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
