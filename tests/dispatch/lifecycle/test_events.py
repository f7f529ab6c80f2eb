"""Whoever is told a request in whatever pieces is told the same."""

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.dispatch.lifecycle.accept import first_step
from dispatcher.dispatch.lifecycle.cancel import cancel
from dispatcher.dispatch.lifecycle.cursor import Cursor, Stage
from dispatcher.dispatch.lifecycle.events import (
    Event,
    EventKind,
    Look,
    awaits_decision,
    events_after,
    progress_events,
)
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import Attempt, DecisionRecord, PartialRecord, RequestState
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.dispatch.lifecycle.signal import note
from dispatcher.identifiers import RequestId, TaskId
from dispatcher.protocol.frames import ProgressFrame, ResultStatus
from dispatcher.records import replace
from tests.dispatch.builders import (
    NOW,
    arrival,
    assigner,
    intent,
    link,
    newest,
    piece,
    published,
    result,
    with_id,
)

PAGE = 3
ACCEPTED, PLAN, DECISION, DELIVERY, PARTIAL, RESULT, ANSWER, _ = EventKind


@dataclass
class History:
    """What a ledger would hold, changed by the real rules; read in pages like the real one."""

    state: RequestState
    decisions: list[DecisionRecord] = field(default_factory=list)
    partials: dict[tuple[str, int, int], PartialRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by = assigner()

    def commit(self, step: Step) -> None:
        self.state = step.state
        self.decisions += step.decisions
        for part in step.partials:
            self.partials.setdefault((part.task_id, part.attempt, part.sequence), part)

    def say(self, position: int, sequence: int) -> None:
        self.commit(note(self.state, NOW, piece(newest(self.state, position), sequence)))

    def advance(self, position: int, fraction: float) -> None:
        attempt = newest(self.state, position)
        frame = ProgressFrame(
            request_id=attempt.request_id,
            task_id=attempt.task_id,
            attempt=attempt.number,
            token=attempt.token,
            instance_id="i1",
            fraction=fraction,
        )
        self.commit(note(self.state, NOW, frame))

    def publish(self, position: int) -> None:
        if newest(self.state, position).status.is_open:
            self.state = published(self.state, position)

    def fail(self, position: int) -> None:
        frame = result(newest(self.state, position), ResultStatus.ERROR, can_retry=True)
        self.commit(settle(self.state, NOW, frame, self.by))

    def succeed(self, position: int) -> None:
        self.commit(settle(self.state, NOW, result(newest(self.state, position)), self.by))

    def cancel(self, position: int = 0) -> None:
        self.commit(cancel(self.state, NOW, self.by))

    def look(self, cursor: Cursor) -> Look:
        due = awaits_decision(cursor, self.state)
        pages = {
            task.task_id: tuple(
                part
                for key, part in sorted(self.partials.items())
                if key[0] == task.task_id and key[1:] >= (mark.attempt, mark.sequence)
            )[:PAGE]
            for task, mark in zip(self.state.tasks, cursor.marks, strict=True)
            if mark.stage is not Stage.ENDED
        }
        return Look(
            state=self.state,
            decisions=tuple(self.decisions) if due else (),
            partials=pages,
            cut=frozenset(task_id for task_id, page in pages.items() if len(page) == PAGE),
        )


def history(*intents) -> History:
    """A request that was just accepted."""
    step = first_step(arrival(*intents), NOW, assigner())
    state = with_id(step.state, RequestId("0192f0c1-0000-7000-8000-000000abcdef"))
    return History(state, [replace(d, request_id=state.request.request_id) for d in step.decisions])


def told(past: History, cursor: Cursor | None = None) -> list[Event]:
    """Everything there is to tell after the cursor, page by page."""
    cursor, events = cursor or Cursor.start(past.state), list[Event]()
    while True:
        more, cursor = events_after(cursor, past.look(cursor))
        if not more:
            return events
        events += more


def kinds(events: list[Event]) -> list[EventKind]:
    return [event.kind for event in events]


def by_task(events: list[Event]) -> dict[TaskId | None, list[tuple[EventKind, int, int]]]:
    """What was told of each task, in order; under None what was told of the whole."""
    found = defaultdict(list)
    for event in events:
        task_id, number, sequence = None, 0, 0
        match event.record:
            case DecisionRecord() as decision:
                task_id, number = event.state.tasks[decision.position].task_id, decision.number
            case Attempt() as attempt:
                task_id, number = attempt.task_id, attempt.number
            case PartialRecord() as part:
                task_id, number, sequence = part.task_id, part.attempt, part.sequence
            case None:
                pass
            case task:
                task_id = task.task_id
        found[task_id].append((event.kind, number, sequence))
    return dict(found)


def test_a_new_request_is_accepted_planned_and_decided():
    assert kinds(told(history())) == [ACCEPTED, PLAN, DECISION]


def test_a_task_that_waits_tells_nothing_yet():
    waiting = intent(1, links=(link("amount", (0, "amount"), required=True),))

    assert kinds(told(history(intent(0), waiting))) == [ACCEPTED, PLAN, DECISION]


def test_an_ended_request_tells_all_of_it():
    past = history()
    past.publish(0)
    past.say(0, 0)
    past.succeed(0)

    assert kinds(told(past)) == [ACCEPTED, PLAN, DECISION, DELIVERY, PARTIAL, RESULT, ANSWER]


def test_a_piece_waits_for_the_one_before_it():
    past = history()
    past.publish(0)
    past.say(0, 1)
    early = told(past)
    past.say(0, 0)

    assert PARTIAL not in kinds(early)
    assert kinds(told(past, early[-1].cursor)) == [PARTIAL, PARTIAL]


def test_pieces_after_a_lost_one_are_told_before_the_result():
    past = history()
    past.publish(0)
    past.say(0, 2)
    past.say(0, 1)
    past.succeed(0)

    assert kinds(told(past))[3:] == [DELIVERY, PARTIAL, PARTIAL, RESULT, ANSWER]


def test_another_attempt_begins_anew():
    past = history()
    past.publish(0)
    past.say(0, 0)
    past.fail(0)
    past.publish(0)
    past.say(0, 0)
    past.succeed(0)

    ((_, whole), (_, parts)) = by_task(told(past)).items()
    assert whole == [(ACCEPTED, 0, 0), (PLAN, 0, 0), (ANSWER, 0, 0)]
    assert parts == [
        (DECISION, 1, 0),
        (DELIVERY, 1, 0),
        (PARTIAL, 1, 0),
        (DECISION, 2, 0),
        (DELIVERY, 2, 0),
        (PARTIAL, 2, 0),
        (RESULT, 0, 0),
    ]


def test_a_full_page_of_the_next_attempt_holds_up_nothing():
    past = history()
    past.say(0, 0)
    past.fail(0)
    for sequence in range(2 * PAGE):
        past.say(0, sequence)
    past.succeed(0)

    assert kinds(told(past)).count(PARTIAL) == 1 + 2 * PAGE


def test_an_attempt_never_sent_has_no_delivery():
    past = history()
    past.cancel()

    assert kinds(told(past)) == [ACCEPTED, PLAN, DECISION, RESULT, ANSWER]


def test_progress_is_told_once_and_only_while_its_attempt_is_at_work():
    past, cursor = history(), Cursor.start(history().state)
    past.publish(0)
    past.advance(0, 0.5)
    before = progress_events(cursor, past.look(cursor), {})
    cursor = told(past)[-1].cursor
    events, shown = progress_events(cursor, past.look(cursor), {})
    again, shown = progress_events(cursor, past.look(cursor), shown)
    past.advance(0, 0.75)
    more, shown = progress_events(cursor, past.look(cursor), shown)
    past.fail(0)
    after = progress_events(cursor, past.look(cursor), {})

    assert before == after == ((), {})
    assert [e.record.progress for e in (*events, *more) if isinstance(e.record, Attempt)] == [
        {"fraction": 0.5, "note": None},
        {"fraction": 0.75, "note": None},
    ]
    assert events[0].cursor == cursor
    assert again == ()


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(0, 1), st.integers(0, 6)),
        st.tuples(st.sampled_from(["publish", "fail", "succeed", "cancel"]), st.integers(0, 1)),
        st.tuples(st.just("look")),
        st.tuples(st.just("resume"), st.integers(0, 50)),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(ACTIONS)
def test_whatever_is_committed_in_whatever_order_a_reader_is_told_each_thing_once(actions):
    past, seen = history(intent(0), intent(1)), list[Event]()
    for name, *arguments in [*actions, ("succeed", 0), ("succeed", 1), ("look",)]:
        if name == "resume":
            del seen[arguments[0] :]
        elif name != "look":
            getattr(past, name)(*arguments)
            continue
        cursor = Cursor.read(str(seen[-1].cursor), past.state) if seen else None
        seen += told(past, cursor)

    assert by_task(seen) == by_task(told(past))
    assert seen[-1].kind is ANSWER
    assert seen[-1].cursor.is_complete
