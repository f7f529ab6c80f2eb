"""What a change of terms does to many stored decisions: who moves, who is refused, what is to be expected."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dispatcher.routing.decision import Decision, Outcome
from dispatcher.tuning.decisions.replay import (
    Choice,
    StoredDecision,
    Terms,
    as_recorded,
    decide_again,
    is_named,
    without_candidates,
)


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
    """One stored decision, without its candidates, beside the one that would have been made."""

    stored: StoredDecision
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

    `rows` are those that were kept. `unexplained` decisions come out differently under the very terms they
    were recorded with, for what was not recorded then; those of another encoder can't be decided again
    under the proposed calibration. Both are left out of everything else.
    """

    rows: Sequence[Compared]
    counts: Mapping[Change, int]
    moves: Mapping[tuple[str, str], int]
    before: Expectation
    after: Expectation
    unexplained: int
    other_encoder: int

    @property
    def decisions(self) -> int:
        """How many were decided again."""
        return sum(self.counts.values())

    @property
    def different(self) -> int:
        """How many of them come out differently, kept or not."""
        return self.decisions - self.counts.get(Change.SAME, 0)

    @property
    def changed(self) -> Sequence[Compared]:
        """The kept ones that come out differently."""
        return [row for row in self.rows if row.change is not Change.SAME]


def compare(
    stored: Iterable[StoredDecision], now: Terms, proposed: Terms, most_changed: int | None = None
) -> Comparison:
    """Decide again under `proposed`; `now` are the terms in force, which check that a decision replays.

    Keeps every row, or with `most_changed` only so many that come out differently, the first ones. Memory
    is for the rows kept and for one count for each two agents between which anything moves.
    """
    tally = _Tally(most_changed)
    for one in stored:
        recorded = one.decision
        if _is_of_another_encoder(recorded, proposed):
            tally.other_encoder += 1
            continue
        before = as_recorded(recorded)
        as_made = Terms(
            weights=recorded.weights,
            similarity_floor=now.similarity_floor,
            composite_floor=now.composite_floor,
            saturation=now.saturation,
        )
        if _who(decide_again(recorded, as_made)) != _who(before):
            tally.unexplained += 1
            continue
        tally.add(one, before, decide_again(recorded, proposed))
    return tally.comparison()


def where(choice: Choice) -> str:
    """The chosen agent, else the outcome."""
    return choice.agent_id or choice.outcome.value


@dataclass(slots=True)
class _Mean:
    """Running sums of the chosen agents' factors."""

    chosen: int = 0
    success: float = 0.0
    load: float = 0.0

    def add(self, choice: Choice) -> None:
        if choice.success is not None and choice.load is not None:
            self.chosen += 1
            self.success += choice.success
            self.load += choice.load

    def expectation(self) -> Expectation:
        if not self.chosen:
            return Expectation(chosen=0, success=None, load=None)
        return Expectation(
            chosen=self.chosen, success=self.success / self.chosen, load=self.load / self.chosen
        )


@dataclass(slots=True)
class _Tally:
    """What is known of the decisions so far."""

    most_changed: int | None
    rows: list[Compared] = field(default_factory=list)
    counts: Counter[Change] = field(default_factory=Counter)
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    before: _Mean = field(default_factory=_Mean)
    after: _Mean = field(default_factory=_Mean)
    unexplained: int = 0
    other_encoder: int = 0

    def add(self, one: StoredDecision, before: Choice, after: Choice) -> None:
        change = _change(before, after)
        self.counts[change] += 1
        self.before.add(before)
        self.after.add(after)
        if change is not Change.SAME:
            self.moves[where(before), where(after)] += 1
        if self._keeps(change):
            bare = without_candidates(one)
            self.rows.append(Compared(stored=bare, before=before, after=after, change=change))

    def comparison(self) -> Comparison:
        return Comparison(
            rows=self.rows,
            counts=self.counts,
            moves=self.moves,
            before=self.before.expectation(),
            after=self.after.expectation(),
            unexplained=self.unexplained,
            other_encoder=self.other_encoder,
        )

    def _keeps(self, change: Change) -> bool:
        if self.most_changed is None:
            return True
        return change is not Change.SAME and len(self.rows) < self.most_changed


def _is_of_another_encoder(decision: Decision, proposed: Terms) -> bool:
    """What the caller named needs no calibration, whatever the encoder."""
    calibration = proposed.calibration
    is_other = calibration is not None and calibration.encoder_id != decision.encoder_id
    return is_other and not is_named(decision)


def _who(choice: Choice) -> tuple[Outcome, str | None]:
    return choice.outcome, choice.agent_id


def _change(before: Choice, after: Choice) -> Change:
    if before.is_refused != after.is_refused:
        return Change.REFUSED if after.is_refused else Change.ACCEPTED
    if _who(before) == _who(after):
        return Change.SAME
    if after.agent_id is None:
        return Change.UNAVAILABLE
    return Change.MOVED if before.agent_id else Change.SERVED
