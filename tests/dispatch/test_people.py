"""Telling people what is theirs, over a broker that does not always take it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from dispatcher.dispatch.lifecycle.handoff import Handoff
from dispatcher.dispatch.lifecycle.request import DecisionRecord, RequestState
from dispatcher.dispatch.people import People
from dispatcher.errors import ConfigurationError, RefusedError, TooLargeError, UnavailableError
from dispatcher.identifiers import CallerId, RequestId, TaskId
from dispatcher.protocol.handoff import HandoffFrame
from dispatcher.records import replace
from dispatcher.routing.decision import Outcome
from tests.dispatch.builders import Agents, accepted, assigner, intent

STATE = accepted(
    *(intent(position, None) for position in range(3)), by=assigner(Agents(outcome=Outcome.HANDED_OFF))
)
HANDOFFS = [
    Handoff(
        task_id=task.task_id,
        request_id=task.request_id,
        caller=CallerId("shop"),
        text="wish",
        language="en",
        environment="production",
        handed_ms=1,
    )
    for task in STATE.tasks
]


@dataclass
class Kept:
    """Implements `HandoffRepository` and `RequestReads` in memory; a request may have been deleted.

    Where `broken`, its context is none that a frame takes; `documents` are its decisions by position.
    """

    state: RequestState | None = STATE
    handoffs: dict[TaskId, Handoff] = field(default_factory=lambda: {one.task_id: one for one in HANDOFFS})
    looks: int = 0
    claimed: set[TaskId] = field(default_factory=set)
    broken: bool = False
    documents: dict[int, str] = field(default_factory=dict)

    async def list(self, *, answered: bool, limit: int, after: TaskId | None = None) -> Sequence[Handoff]:
        raise NotImplementedError

    async def count_open(self) -> int:
        return len(self.handoffs)

    async def of_request(self, request_id: RequestId) -> Sequence[Handoff]:
        self.looks += 1
        return list(self.handoffs.values())

    async def find(self, task_id: TaskId) -> Handoff | None:
        return self.handoffs.get(task_id)

    async def answer(self, task_id: TaskId, answer: str, by: str) -> bool:
        raise NotImplementedError

    async def claim_unpublished(self, limit: int) -> Sequence[Handoff]:
        self.looks += 1
        waiting = [
            one for one in self.handoffs.values() if one.published_ms is None and not one.publish_error
        ]
        free = [one for one in waiting if one.task_id not in self.claimed][:limit]
        self.claimed |= {one.task_id for one in free}
        return free

    async def give_back(self, task_ids: Sequence[TaskId]) -> None:
        self.claimed -= set(task_ids)

    async def mark_unpublishable(self, task_id: TaskId, reason: str) -> None:
        self.handoffs[task_id] = replace(self.handoffs[task_id], publish_error=reason)

    async def mark_published(self, task_id: TaskId) -> None:
        self.handoffs[task_id] = replace(self.handoffs[task_id], published_ms=2)

    async def read(self, request_id: RequestId) -> RequestState | None:
        if self.state is None or not self.broken:
            return self.state
        return replace(self.state, request=replace(self.state.request, context={"gap": object()}))

    async def read_decisions(self, request_id: RequestId) -> tuple[DecisionRecord, ...]:
        return tuple(
            DecisionRecord(request_id=request_id, position=position, number=1, document=document)
            for position, document in self.documents.items()
        )


@dataclass
class Queue:
    """Implements `PeopleQueue`; takes `room` frames, and of those that are `too_large` none.

    `is_up` False: there is no broker to prepare it at. `is_other`: it exists with other arguments.
    """

    room: int
    too_large: tuple[str, ...] = ()
    is_up: bool = True
    is_other: bool = False
    told: list[str] = field(default_factory=list)
    prepared: int = 0

    async def prepare_people(self) -> None:
        if not self.is_up:
            raise UnavailableError("no broker")
        if self.is_other:
            raise ConfigurationError("queue people exists with other arguments")
        self.prepared += 1

    async def tell_people(self, frame: HandoffFrame) -> None:
        if frame.task_id in self.too_large:
            raise TooLargeError("much too large")
        if len(self.told) == self.room:
            raise RefusedError("full")
        self.told.append(frame.task_id)


async def test_what_the_broker_refuses_is_told_the_next_time() -> None:
    kept, queue = Kept(), Queue(room=1)
    people = People(repository=kept, reads=kept, queue=queue)

    first = await people.publish()
    queue.room = 5
    second, third = await people.publish(), await people.publish()

    assert (first, second, third) == (1, 2, 0)
    assert queue.told == ["q1.0", "q1.1", "q1.2"]
    assert queue.prepared == 2


async def test_one_that_can_not_be_told_keeps_none_behind_it_waiting() -> None:
    kept, queue = Kept(), Queue(room=5, too_large=("q1.0",))
    people = People(repository=kept, reads=kept, queue=queue)

    first, second = await people.publish(), await people.publish()

    assert (first, second) == (2, 0)
    assert queue.told == ["q1.1", "q1.2"]
    assert [one.publish_error for one in kept.handoffs.values()] == ["too_large", None, None]


async def test_what_makes_no_frame_is_not_tried_again() -> None:
    kept, queue = Kept(broken=True), Queue(room=5)
    people = People(repository=kept, reads=kept, queue=queue)

    assert (await people.publish(), await people.publish()) == (0, 0)
    assert {one.publish_error for one in kept.handoffs.values()} == {"ValidationError"}
    assert queue.told == []


@pytest.mark.parametrize(
    "document", ['{"candidates": [{}]}', '{"candidates": 7}', "[]", "no JSON", '{"reason": 7}']
)
async def test_a_decision_of_another_form_keeps_none_behind_it_waiting(document: str) -> None:
    kept, queue = Kept(documents={0: document}), Queue(room=5)
    people = People(repository=kept, reads=kept, queue=queue)

    told = await people.publish()

    assert told == 2
    assert queue.told == ["q1.1", "q1.2"]
    assert [bool(one.publish_error) for one in kept.handoffs.values()] == [True, False, False]


async def test_while_the_queue_is_another_one_that_is_said_once_and_nothing_is_claimed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept, queue = Kept(), Queue(room=5, is_other=True)
    people = People(repository=kept, reads=kept, queue=queue)

    told = [await people.publish() for _ in range(3)]
    problem, looks, claimed = people.problem(), kept.looks, set(kept.claimed)
    queue.is_other = False

    assert (told, claimed, looks) == ([0, 0, 0], set(), 1)
    assert problem == "queue people exists with other arguments"
    assert [record.msg for record in caplog.records] == ["handoff.queue_unusable"]
    assert (await people.publish(), people.problem()) == (3, None)


async def test_while_the_broker_is_away_everything_is_given_back() -> None:
    kept, queue = Kept(), Queue(room=5, is_up=False)
    people = People(repository=kept, reads=kept, queue=queue)

    with pytest.raises(UnavailableError):
        await people.publish()
    queue.is_up = True

    assert await people.publish() == 3


async def test_what_waits_is_counted_for_admission() -> None:
    kept = Kept()
    people = People(repository=kept, reads=kept, queue=None)

    await people.count()

    assert people.waiting.count == 3


class Slow(Kept):
    """While it counts, others are accepted here."""

    def __init__(self) -> None:
        super().__init__()
        self.people = People(repository=self, reads=self, queue=None)

    async def count_open(self) -> int:
        counted = await super().count_open()
        self.people.waiting.add(2)
        return counted


async def test_what_is_accepted_during_a_count_is_not_forgotten() -> None:
    people = Slow().people
    people.waiting.add(9)

    await people.count()

    assert people.waiting.count == 3 + 2


async def test_without_a_broker_nothing_is_looked_for() -> None:
    kept = Kept()

    assert await People(repository=kept, reads=kept, queue=None).publish() == 0
    assert kept.looks == 0


async def test_what_was_deleted_meanwhile_is_not_told() -> None:
    kept, queue = Kept(state=None), Queue(room=5)

    await People(repository=kept, reads=kept, queue=queue).publish()

    assert queue.told == []


@pytest.mark.parametrize(("state", "looks"), [(accepted(), 0), (STATE, 1)])
async def test_a_request_without_such_parts_costs_no_look(state: RequestState, looks: int) -> None:
    kept = Kept()

    found = await People(repository=kept, reads=kept, queue=None).of(state)

    assert (len(found), kept.looks) == (3 * looks, looks)
