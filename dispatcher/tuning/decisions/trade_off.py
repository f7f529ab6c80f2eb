"""What other terms would have been worth: success against load, days, and what people had said. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dispatcher.routing.decision import Weights
from dispatcher.tuning.decisions.comparison import Change, Compared, Comparison, compare
from dispatcher.tuning.decisions.decision_log import Entry
from dispatcher.tuning.decisions.replay import StoredDecision, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Terms under which all decisions were made again; means over those that chose an agent.

    `changed` is the share of decisions that come out differently.
    """

    weights: Weights
    success: float
    load: float
    changed: float


def share_out(similarity: float, success: float) -> Weights:
    """Weights where what similarity leaves is shared between success and headroom, both in [0, 1]."""
    left = 1.0 - similarity
    return Weights(similarity=similarity, success=left * success, headroom=left * (1 - success))


def trade_off(stored: Sequence[StoredDecision], now: Terms, proposals: Iterable[Weights]) -> list[Tried]:
    """Each proposal's expectations; weights under which nobody would be chosen are left out."""
    found = []
    for weights in proposals:
        made = compare(stored, now, replace(now, weights=weights), most_changed=0)
        if made.after.success is not None and made.after.load is not None:
            changed = made.different / made.decisions
            found.append(
                Tried(weights=weights, success=made.after.success, load=made.after.load, changed=changed)
            )
    return found


def by_day(comparison: Comparison) -> dict[str, Counter[Change]]:
    """What became of each day's decisions; days are UTC, written as 2025-01-06."""
    days: dict[str, Counter[Change]] = {}
    for row in sorted(comparison.rows, key=lambda one: one.stored.recorded_ms):
        days.setdefault(_day(row), Counter())[row.change] += 1
    return days


def judged(comparison: Comparison, entries: Iterable[Entry]) -> Mapping[tuple[str, Change], int]:
    """How many of the decisions that people judged changed, by verdict and change."""
    verdicts = {(one.stored.request_id, one.stored.position): one.verdict for one in entries}
    found: Counter[tuple[str, Change]] = Counter()
    for row in comparison.rows:
        verdict = verdicts.get((row.stored.request_id, row.stored.position))
        if verdict is not None:
            found[verdict, row.change] += 1
    return found


def shares_by_agent(comparison: Comparison) -> dict[str, tuple[int, int]]:
    """How many intents each agent took before, and would take, most changed first."""
    before = Counter(row.before.agent_id for row in comparison.rows if row.before.agent_id)
    after = Counter(row.after.agent_id for row in comparison.rows if row.after.agent_id)
    agents = sorted({*before, *after}, key=lambda one: (-abs(after[one] - before[one]), one))
    return {agent: (before[agent], after[agent]) for agent in agents}


def _day(row: Compared) -> str:
    return datetime.fromtimestamp(row.stored.recorded_ms / 1000, tz=UTC).date().isoformat()
