"""What a change of terms does to many stored decisions: who moves, who is refused, what is to be expected."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from dispatcher.routing.decision import Outcome, Rejection
from dispatcher.tuning.decisions.replay import Choice, Stored, Terms, as_recorded, decide_again


class Change(StrEnum):
    """What became of one decision."""

    SAME = "same"
    MOVED = "moved"
    """Another agent."""
    REFUSED = "refused"
    """Accepted then, out of scope now; a person may get what is."""
    ACCEPTED = "accepted"
    """Out of scope then, accepted now."""
    UNAVAILABLE = "unavailable"
    """An agent then, none now although it is in scope."""
    SERVED = "served"
    """In scope both times, an agent only now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One stored decision beside the one that would have been made."""

    stored: Stored
    before: Choice
    after: Choice
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Means over the decisions that chose an agent, in [0, 1]; None where none did."""

    chosen: int
    success: float | None
    load: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All of them. `moves` counts the requests that went from one agent (or reason) to another.

    `unexplained` decisions come out differently under the very terms they were recorded with, for
    what was not recorded then; they are left out of everything else.
    """

    rows: Sequence[Compared]
    counts: Mapping[Change, int]
    moves: Mapping[tuple[str, str], int]
    before: Expectation
    after: Expectation
    unexplained: int

    @property
    def changed(self) -> Sequence[Compared]:
        """Those that come out differently."""
        return [row for row in self.rows if row.change is not Change.SAME]


def compare(stored: Iterable[Stored], now: Terms, proposed: Terms) -> Comparison:
    """Decide again under `proposed`; `now` are the terms in force, which check that a decision replays.

    Raises ConfigurationError where the proposed calibration belongs to another encoder.
    """
    rows, unexplained = [], 0
    for one in stored:
        before, recorded = as_recorded(one.decision), one.decision
        as_made = Terms(
            weights=recorded.weights,
            similarity_floor=now.similarity_floor,
            composite_floor=now.composite_floor,
            saturation=now.saturation,
        )
        if _who(decide_again(recorded, as_made)) != _who(before):
            unexplained += 1
            continue
        after = decide_again(recorded, proposed)
        rows.append(Compared(stored=one, before=before, after=after, change=_change(before, after)))
    return Comparison(
        rows=rows,
        counts=Counter(row.change for row in rows),
        moves=Counter((where(row.before), where(row.after)) for row in rows if row.change is not Change.SAME),
        before=_expectation([row.before for row in rows]),
        after=_expectation([row.after for row in rows]),
        unexplained=unexplained,
    )


def where(choice: Choice) -> str:
    """The chosen agent, else the outcome."""
    return choice.agent_id or choice.outcome.value


def _who(choice: Choice) -> tuple[Outcome, str | None]:
    return choice.outcome, choice.agent_id


def _change(before: Choice, after: Choice) -> Change:
    if _who(before) == _who(after):
        return Change.SAME
    was_refused, is_refused = map(_is_refused, (before, after))
    if was_refused != is_refused:
        return Change.REFUSED if is_refused else Change.ACCEPTED
    if after.agent_id is None:
        return Change.UNAVAILABLE
    return Change.MOVED if before.agent_id else Change.SERVED


def _is_refused(choice: Choice) -> bool:
    is_below = choice.reason == Rejection.BELOW_SCOPE_FLOOR.value
    is_with_people = choice.outcome is Outcome.HANDED_OFF
    return choice.outcome is Outcome.OUT_OF_SCOPE or (is_with_people and is_below)


def _expectation(choices: Sequence[Choice]) -> Expectation:
    chosen = [one for one in choices if one.agent_id is not None]
    return Expectation(
        chosen=len(chosen),
        success=fmean(one.success for one in chosen if one.success is not None) if chosen else None,
        load=fmean(one.load for one in chosen if one.load is not None) if chosen else None,
    )
