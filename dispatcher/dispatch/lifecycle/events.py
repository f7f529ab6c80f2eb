"""What happened to a request, as a sequence of events told from its committed state (pure).

Nothing is stored for this: a cursor says how far a reader was told, and `events_after` what comes
next. Of one task the order is fixed: for each attempt its decision, its delivery and its partials by
sequence, and last the result. A partial waits for those before it until its attempt can have no
more. What is stored later therefore never belongs before a cursor, and whoever resumes, anywhere,
is told exactly the rest.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from dispatcher.dispatch.lifecycle.cursor import Cursor, Head, Mark, Stage
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    DecisionRecord,
    PartialRecord,
    RequestState,
    RequestStatus,
    Task,
    TaskStatus,
)
from dispatcher.identifiers import TaskId
from dispatcher.records import Struct, field, replace


class EventKind(StrEnum):
    """What an event tells."""

    ACCEPTED = "accepted"
    PLAN = "plan"
    DECISION = "decision"
    DELIVERY = "delivery"
    PARTIAL = "partial"
    RESULT = "result"
    ANSWER = "answer"
    PROGRESS = "progress"
    """Outside of the sequence: only the latest is known, so it has no place in a cursor."""


Progress = Mapping[tuple[TaskId, int], Mapping[str, object]]
"""What attempts, by task and number, last said of how far they are."""
Record = DecisionRecord | Attempt | PartialRecord | Task


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened. `cursor` is how far its reader knows the request once it has this.

    `record` is the decision, the attempt that was delivered or goes on, the partial, or the task that
    ended; None where the event is about the whole request. `state` is the request as it was looked at.
    """

    kind: EventKind
    cursor: Cursor
    state: RequestState
    record: Record | None = None


class Look(Struct, frozen=True, kw_only=True):
    """What was read of a request: its state first, the records after it.

    `partials` holds the partials of each task from the cursor on, and `cut` the tasks that have more
    of them than were read.
    """

    state: RequestState
    decisions: tuple[DecisionRecord, ...] = ()
    partials: Mapping[TaskId, tuple[PartialRecord, ...]] = field(default_factory=dict)
    cut: frozenset[TaskId] = frozenset()


class Move(NamedTuple):
    """One step along a task's sequence, and what there is to tell of it."""

    mark: Mark
    kind: EventKind | None = None
    record: Record | None = None


def events_after(cursor: Cursor, look: Look) -> tuple[tuple[Event, ...], Cursor]:
    """The events that follow the cursor, and the cursor after them."""
    events: list[Event] = []
    for head, kind in ((Head.ACCEPTED, EventKind.ACCEPTED), (Head.PLANNED, EventKind.PLAN)):
        if cursor.head < head:
            cursor = replace(cursor, head=head)
            events.append(Event(kind=kind, cursor=cursor, state=look.state))
    for task in look.state.tasks:
        for move in _moves(look, task, cursor.marks[task.position]):
            cursor = cursor.with_mark(task.position, move.mark)
            if move.kind is not None:
                events.append(Event(kind=move.kind, cursor=cursor, state=look.state, record=move.record))
    ended = look.state.request.status is not RequestStatus.OPEN
    if ended and cursor.head < Head.ANSWERED and all(mark.stage is Stage.ENDED for mark in cursor.marks):
        cursor = replace(cursor, head=Head.ANSWERED)
        events.append(Event(kind=EventKind.ANSWER, cursor=cursor, state=look.state))
    return tuple(events), cursor


def progress_events(cursor: Cursor, look: Look, shown: Progress) -> tuple[tuple[Event, ...], Progress]:
    """What attempts at work say of how far they are and was not shown; and what is shown then.

    Only of those whose delivery was told.
    """
    at_work = [
        attempt
        for task, mark in zip(look.state.tasks, cursor.marks, strict=True)
        if mark.stage is Stage.DELIVERED and (attempt := _attempt(look, task, mark)) is not None
    ]
    said = {(a.task_id, a.number): a.progress for a in at_work if a.status.is_open and a.progress}
    events = tuple(
        Event(kind=EventKind.PROGRESS, cursor=cursor, state=look.state, record=attempt)
        for attempt in at_work
        if (key := (attempt.task_id, attempt.number)) in said and said[key] != shown.get(key)
    )
    return events, said


def awaits_decision(cursor: Cursor, state: RequestState) -> bool:
    """Whether the state knows of a decision that comes after the cursor."""
    return any(_awaits_decision(state, task, cursor.marks[task.position]) for task in state.tasks)


def _awaits_decision(state: RequestState, task: Task, mark: Mark) -> bool:
    if mark.stage is Stage.ENDED or task.status is TaskStatus.WAITING:
        return False
    known = mark.attempt if mark.stage is not Stage.NEW else mark.attempt - 1
    return known == 0 or known < len(state.attempts_of(task.task_id))


def _moves(look: Look, task: Task, mark: Mark) -> Iterator[Move]:
    while (move := _STEPS[mark.stage](look, task, mark)) is not None:
        mark = move.mark
        yield move


def _decision(look: Look, task: Task, mark: Mark) -> Move | None:
    decided = Mark(attempt=mark.attempt, stage=Stage.DECIDED)
    for record in look.decisions:
        if (record.position, record.number) == (task.position, mark.attempt):
            return Move(decided, EventKind.DECISION, record)
    return Move(decided) if _is_over(look, task, mark) else None


def _delivery(look: Look, task: Task, mark: Mark) -> Move | None:
    delivered = Mark(attempt=mark.attempt, stage=Stage.DELIVERED)
    attempt = _attempt(look, task, mark)
    if attempt is not None and (_is_delivered(attempt) or _partials(look, task, mark)):
        return Move(delivered, EventKind.DELIVERY, attempt)
    return Move(delivered) if _is_over(look, task, mark) else None


def _after_delivery(look: Look, task: Task, mark: Mark) -> Move | None:
    over = _is_over(look, task, mark)
    partials = [partial for partial in _partials(look, task, mark) if partial.sequence >= mark.sequence]
    if partials and (over or partials[0].sequence == mark.sequence):
        return Move(mark._replace(sequence=partials[0].sequence + 1), EventKind.PARTIAL, partials[0])
    if not over or _is_cut(look, task, mark):
        return None
    if len(look.state.attempts_of(task.task_id)) > mark.attempt:
        return Move(Mark(attempt=mark.attempt + 1, stage=Stage.NEW))
    return Move(Mark(attempt=mark.attempt, stage=Stage.ENDED), EventKind.RESULT, task)


def _nothing(look: Look, task: Task, mark: Mark) -> None:
    return None


_STEPS = {
    Stage.NEW: _decision,
    Stage.DECIDED: _delivery,
    Stage.DELIVERED: _after_delivery,
    Stage.ENDED: _nothing,
}


def _is_over(look: Look, task: Task, mark: Mark) -> bool:
    """Whether nothing more can be stored of the attempt at the mark: the task ended or moved on."""
    return task.status.is_terminal or len(look.state.attempts_of(task.task_id)) > mark.attempt


def _attempt(look: Look, task: Task, mark: Mark) -> Attempt | None:
    attempts = look.state.attempts_of(task.task_id)
    return next((a for a in attempts if a.number == mark.attempt), None)


def _partials(look: Look, task: Task, mark: Mark) -> list[PartialRecord]:
    return [partial for partial in look.partials.get(task.task_id, ()) if partial.attempt == mark.attempt]


def _is_cut(look: Look, task: Task, mark: Mark) -> bool:
    """Whether the attempt at the mark has partials that were not read."""
    return task.task_id in look.cut and look.partials[task.task_id][-1].attempt == mark.attempt


def _is_delivered(attempt: Attempt) -> bool:
    """Whether its agent has it, as far as anybody knows; a DUE one may have been sent, or not."""
    if attempt.status is AttemptStatus.DUE:
        return False
    answered = (AttemptStatus.SUCCEEDED, AttemptStatus.FAILED)
    return attempt.published_ms is not None or attempt.status in answered
