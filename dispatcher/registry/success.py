"""How likely an agent is to succeed at a capability, from what it did lately.

`(prior · prior_calls + successes) / (prior_calls + successes + failures)`: the mean of a Beta
distribution whose prior is worth `prior_calls` calls. Every outcome weighs half as much after
`half_life_s`, so an agent that did nothing for long is back at the prior.
"""

from collections import OrderedDict
from dataclasses import dataclass

from dispatcher.identifiers import AgentId, Capability
from dispatcher.records import Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessRules:
    """`prior` in [0, 1]; `half_life_s` in seconds; `max_entries` bounds the memory of a window."""

    prior: float = 0.8
    prior_calls: float = 20.0
    half_life_s: float = 3600.0
    max_entries: int = 100_000


class Outcomes(Struct, frozen=True, kw_only=True):
    """Decayed counts of successes and failures, as of `at` (seconds of a monotonic clock)."""

    succeeded: float = 0.0
    failed: float = 0.0
    at: float = 0.0


def decay(outcomes: Outcomes, now: float, half_life_s: float) -> Outcomes:
    """The same outcomes as they weigh `now`; a time before `at` changes no weight."""
    left = _left(outcomes, now, half_life_s)
    return Outcomes(
        succeeded=outcomes.succeeded * left, failed=outcomes.failed * left, at=max(now, outcomes.at)
    )


def add_outcome(outcomes: Outcomes, *, succeeded: bool, now: float, half_life_s: float) -> Outcomes:
    """One more call, at full weight."""
    old = decay(outcomes, now, half_life_s)
    return Outcomes(succeeded=old.succeeded + succeeded, failed=old.failed + (not succeeded), at=old.at)


def estimate(outcomes: Outcomes, now: float, rules: SuccessRules) -> float:
    """The shrunk success rate in [0, 1]."""
    left = _left(outcomes, now, rules.half_life_s)
    succeeded = outcomes.succeeded * left
    calls = rules.prior_calls + succeeded + outcomes.failed * left
    return (rules.prior * rules.prior_calls + succeeded) / calls


def _left(outcomes: Outcomes, now: float, half_life_s: float) -> float:
    share: float = 0.5 ** (max(now - outcomes.at, 0.0) / half_life_s)
    return share


class SuccessWindow:
    """Outcomes per agent and capability; past `max_entries` the longest untouched one is forgotten."""

    def __init__(self, rules: SuccessRules) -> None:
        self._rules = rules
        self._entries: OrderedDict[tuple[AgentId, Capability], Outcomes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, agent_id: AgentId, capability: Capability, *, succeeded: bool, now: float) -> None:
        """Count one ended attempt."""
        old = self._entries.get((agent_id, capability)) or Outcomes(at=now)
        new = add_outcome(old, succeeded=succeeded, now=now, half_life_s=self._rules.half_life_s)
        self.put(agent_id, capability, new)

    def put(self, agent_id: AgentId, capability: Capability, outcomes: Outcomes) -> None:
        """Replace what is known by these counts."""
        self._entries[agent_id, capability] = outcomes
        self._entries.move_to_end((agent_id, capability))
        if len(self._entries) > self._rules.max_entries:
            self._entries.popitem(last=False)

    def estimate(self, agent_id: AgentId, capability: Capability, now: float) -> float:
        """The shrunk success rate in [0, 1]; the prior where nothing is known."""
        outcomes = self._entries.get((agent_id, capability))
        return self._rules.prior if outcomes is None else estimate(outcomes, now, self._rules)

    def forget(self, agent_id: AgentId) -> None:
        """Drop everything about an agent that is no longer registered."""
        for key in [key for key in self._entries if key[0] == agent_id]:
            del self._entries[key]
