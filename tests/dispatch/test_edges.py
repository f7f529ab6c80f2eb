"""Relay, collector and waiters over a real ledger."""

import asyncio
from dataclasses import replace
from functools import partial

import orjson
import pytest

from dispatcher import records
from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.assign import AttemptRules
from dispatcher.dispatch.lifecycle.cancel import cancel
from dispatcher.dispatch.lifecycle.ledger import Change, Decide
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestStatus, TaskStatus
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.dispatch.outbox import Outbox
from dispatcher.dispatch.relay import RelayRules
from dispatcher.errors import OverloadedError, RequestError
from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.intents.plan import Entity, EntityKind
from dispatcher.protocol.frames import CancelFrame, ResultFrame, ResultStatus, TaskFrame
from dispatcher.protocol.link import Settlement
from tests.dispatch.builders import QUOTE, Agents, Loads, assigner, intent, link, newest, result
from tests.dispatch.conftest import Chain

A1 = AgentId("a1")


class Crowded(Outbox):
    """Has less room than it said: others came first."""

    @property
    def room(self) -> int:
        return 1


async def _take(chain: Chain) -> TaskFrame:
    async with asyncio.timeout(5), chain.channel.link().deliveries(A1, 1) as deliveries:
        delivery = await anext(deliveries)
        await delivery.settle(Settlement.ACK)
        return TaskFrame.model_validate_json(delivery.body)


async def test_an_accepted_attempt_reaches_its_agent_with_what_remains_of_its_time(chain: Chain) -> None:
    amount = Entity(kind=EntityKind.AMOUNT, text="¥5", value=5.0, start=0, end=2)
    change = await chain.accept(intent(0, entities=(amount,)))

    await chain.relay.publish_next()

    frame = await _take(chain)
    state = await chain.ledger.read(change.after.request.request_id)
    assert frame.token == newest(change.after).token
    assert frame.idempotency_key == f"{change.after.request.request_id}:0"
    assert frame.budget_ms == 15_000
    assert frame.payload.entities[0] == {"kind": "amount", "text": "¥5", "value": 5.0, "start": 0, "end": 2}
    assert state is not None
    assert newest(state).status is AttemptStatus.PUBLISHED
    assert chain.loads.open == {A1: 1}


async def test_a_result_ends_the_request_and_counts_for_its_agent(chain: Chain) -> None:
    change = await chain.accept()
    body = result(newest(change.after)).model_dump_json().encode()

    settlement = await chain.collector.on_result(body)

    state = await chain.ledger.read(change.after.request.request_id)
    assert settlement is Settlement.ACK
    assert state is not None
    assert state.request.status is RequestStatus.COMPLETED
    assert chain.loads.open == {A1: 0}
    assert chain.loads.outcomes == [(A1, True)]


async def test_a_result_publishes_the_task_that_waited_for_it(chain: Chain) -> None:
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount")),))
    change = await chain.accept(intent(0), quote)
    await chain.relay.publish_next()
    await _take(chain)

    await chain.collector.on_result(result(newest(change.after)).model_dump_json().encode())
    await chain.relay.publish_next()

    frame = await _take(chain)
    assert frame.capability == QUOTE
    assert frame.payload.input == {"amount": 12.5}


async def test_an_unreadable_result_is_dead_and_a_foreign_one_is_done_with(chain: Chain) -> None:
    change = await chain.accept()
    foreign = result(newest(change.after), request_id="nobody").model_dump_json().encode()

    assert await chain.collector.on_result(b"{") is Settlement.DEAD
    assert await chain.collector.on_result(foreign) is Settlement.ACK


async def test_an_agent_without_a_queue_is_followed_by_another_until_the_part_is_unavailable(
    chain: Chain,
) -> None:
    busy = result(newest((change := await chain.accept()).after), ResultStatus.BUSY)
    await chain.outbox.take()

    await chain.collector.on_result(busy.model_dump_json().encode())
    await chain.relay.publish_next()

    state = await chain.ledger.read(change.after.request.request_id)
    assert state is not None
    assert [a.agent_id for a in state.attempts] == ["a1", "a2", "a1"]
    assert state.attempts[1].error_code == "unroutable"
    assert state.tasks[0].status is TaskStatus.OPEN


async def test_unclaimed_work_is_found_by_any_relay_as_far_as_its_agent_has_room(chain: Chain) -> None:
    unclaimed = assigner(loads=Loads(room=0))
    for _ in range(3):
        await chain.accept(by=unclaimed)
    chain.loads.room = 2

    taken = await chain.relay.claim()

    assert taken == 2
    assert await chain.relay.claim() == 0


async def test_a_full_outbox_leaves_the_attempt_in_the_ledger(chain: Chain) -> None:
    for _ in range(12):
        await chain.accept()

    assert chain.outbox.room == 0
    assert (await chain.ledger.open_attempts())[A1] == 12


async def test_what_found_no_place_in_the_outbox_surely_was_not_sent(chain: Chain) -> None:
    changes = [await chain.accept() for _ in range(12)]
    freed = [await chain.ledger.read(change.after.request.request_id) for change in changes[10:]]
    for _ in range(10):
        await chain.outbox.take()

    assert [newest(state).claimed_by for state in freed if state] == [None, None]
    assert await chain.relay.claim() == 2
    due, _ = await chain.outbox.take()
    assert due.attempt.published_ms is None


async def test_what_the_relay_claimed_and_has_no_place_for_is_given_back(chain: Chain) -> None:
    await chain.accept()
    crowded = Crowded(replica=ReplicaId("r1"), limit=1, clock=SystemClock())
    crowded.put((await chain.outbox.take())[0], crowded.now())
    change = await chain.accept(by=assigner(loads=Loads(room=0)))

    assert await replace(chain.relay, outbox=crowded).claim() == 1

    state = await chain.ledger.read(change.after.request.request_id)
    assert state is not None
    assert newest(state).claimed_by is None


async def test_a_waiter_gets_the_state_as_soon_as_the_request_ends(chain: Chain) -> None:
    change = await chain.accept()
    request_id = change.after.request.request_id
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(chain.waiters.wait(request_id, 30))
        await chain.collector.on_result(result(newest(change.after)).model_dump_json().encode())

    assert waiting.result().request.status is RequestStatus.COMPLETED


async def test_a_waiter_whose_time_is_up_gets_the_open_state(chain: Chain) -> None:
    change = await chain.accept()

    state = await chain.waiters.wait(change.after.request.request_id, 0)

    assert state.request.status is RequestStatus.OPEN


async def test_a_wake_up_from_elsewhere_makes_the_waiter_look_into_the_ledger(chain: Chain) -> None:
    change = await chain.accept()
    request_id = change.after.request.request_id
    done = result(newest(change.after))

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(chain.waiters.wait(request_id, 30))
        await chain.ledger.update(request_id, _settled_by(chain, done))
        await chain.channel.wake(ReplicaId("r1"), request_id)

    assert waiting.result().request.status is RequestStatus.COMPLETED


def _settled_by(chain: Chain, frame: ResultFrame) -> Decide:
    """The same change as the collector's, behind this replica's back."""
    return lambda state, now: settle(state, now, frame, chain.by)


async def test_more_waiters_than_the_limit_are_refused_and_an_unknown_request_is_an_error(
    chain: Chain,
) -> None:
    request_id = (await chain.accept()).after.request.request_id
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(chain.waiters.wait(request_id, 30)) for _ in range(2)]
        await asyncio.wait(waiting, timeout=0)

        with pytest.raises(OverloadedError, match="too many clients"):
            await chain.waiters.wait(request_id, 30)
        for task in waiting:
            task.cancel()

    with pytest.raises(RequestError, match="does not exist"):
        await chain.waiters.wait(RequestId("nobody"), 1)


async def test_a_batch_of_decisions_counts_each_before_the_next(chain: Chain) -> None:
    change = await chain.accept(*(intent(position) for position in range(3)))

    assert len(change.new_attempts()) == 3
    assert chain.loads.open == {A1: 3}


async def test_what_was_queued_too_long_is_left_to_the_ledger(chain: Chain) -> None:
    change = await chain.accept()
    stale = replace(chain.relay, rules=RelayRules(reply_to="results", stale_ms=0))

    await stale.publish_next()

    state = await chain.ledger.read(change.after.request.request_id)
    assert state is not None
    assert newest(state).status is AttemptStatus.DUE


async def test_a_grant_that_was_revoked_meanwhile_is_not_sent(chain: Chain) -> None:
    change = await chain.accept()
    chain.granted = frozenset()

    await chain.relay.publish_next()

    state = await chain.ledger.read(change.after.request.request_id)
    assert state is not None
    assert state.attempts[0].status is AttemptStatus.NOT_STARTED
    assert state.attempts[0].published_ms is None


async def test_a_lost_task_is_published_again_once_its_agent_is_idle(chain: Chain) -> None:
    await chain.accept()
    await chain.relay.publish_next()
    first = await _take(chain)

    assert await chain.sweep.reconcile() == 0
    chain.loads.idle = True
    assert await chain.sweep.reconcile() == 1
    assert await chain.relay.claim() == 1
    await chain.relay.publish_next()

    assert (await _take(chain)).token == first.token


async def test_work_for_a_gone_agent_is_given_to_another(chain: Chain) -> None:
    full = assigner(Agents("a1", "a2"), loads=Loads(room=0))
    change = await chain.accept(by=full)
    chain.loads.room = 0

    assert await chain.relay.claim() == 1

    state = await chain.ledger.read(change.after.request.request_id)
    assert state is not None
    assert [a.agent_id for a in state.attempts] == ["a1", "a2"]


async def test_work_that_nobody_else_takes_does_not_hold_up_what_is_behind_it(chain: Chain) -> None:
    chain.loads.room = 0
    full = Loads(room=0)
    stuck = records.replace(chain.by, choose=Agents("a1"), loads=full)
    behind = records.replace(chain.by, loads=full)
    first = await chain.accept(by=stuck)
    second = await chain.accept(by=behind)
    one_at_a_time = replace(chain.relay.rules, moved_at_once=1)
    nobody_else = replace(chain.relay, assigner=stuck, rules=one_at_a_time)
    somebody = replace(chain.relay, assigner=behind, rules=one_at_a_time)

    await nobody_else.claim()
    await somebody.claim()

    states = [await chain.ledger.read(c.after.request.request_id) for c in (first, second)]
    assert [len(state.attempts) for state in states if state] == [1, 2]


async def test_one_request_that_cannot_be_changed_does_not_hold_up_the_sweep(
    chain: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    rules = AttemptRules(request_timeout_ms=0)
    broken = (await chain.accept(by=assigner(rules=rules))).after.request.request_id
    fine = (await chain.accept(by=assigner(rules=rules))).after.request.request_id
    chain.ledger.refused = broken

    touched = await chain.sweep.look()

    state = await chain.ledger.read(fine)
    assert touched == 2
    assert state is not None
    assert state.request.status is RequestStatus.FAILED
    assert "sweep.failed" in caplog.text


async def test_at_shutdown_waiting_clients_get_the_state_as_it_stands(chain: Chain) -> None:
    request_id = (await chain.accept()).after.request.request_id
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(chain.waiters.wait(request_id, 30))
        await asyncio.wait([waiting], timeout=0)
        chain.waiters.release()

    assert waiting.result().request.status is RequestStatus.OPEN


def _signal(change: Change, kind: str, **fields: object) -> bytes:
    attempt = newest(change.after)
    told = {"task_id": attempt.task_id, "attempt": attempt.number, "token": attempt.token, **fields}
    return orjson.dumps({"type": kind, "request_id": attempt.request_id, "instance_id": "i1", **told})


async def test_what_an_agent_says_while_it_works_is_kept(chain: Chain) -> None:
    change = await chain.accept()
    request_id, task_id = change.after.request.request_id, change.after.tasks[0].task_id

    for told in (
        _signal(change, "started"),
        _signal(change, "progress", fraction=0.5, note="half"),
        _signal(change, "partial", sequence=0, result={"text": "好的"}),
    ):
        assert await chain.collector.on_result(told) is Settlement.ACK

    state = await chain.ledger.read(request_id)
    assert state is not None
    assert newest(state).started_ms is not None
    assert newest(state).progress == {"fraction": 0.5, "note": "half"}
    (piece,) = await chain.ledger.read_partials(request_id, task_id, (0, 0), 10)
    assert orjson.loads(piece.document)["text"] == "好的"


async def test_a_cancelled_task_is_stopped_at_its_agent(chain: Chain) -> None:
    change = await chain.accept()
    await chain.relay.publish_next()

    async with asyncio.timeout(5), chain.channel.link().controls(A1) as controls:
        await chain.books.update(change.after.request.request_id, partial(cancel, assigner=chain.by))
        frame = CancelFrame.model_validate_json(await anext(controls))

    assert (frame.task_id, frame.agent_id) == (change.after.tasks[0].task_id, "a1")


async def test_work_that_waited_goes_out_as_soon_as_there_is_room(chain: Chain) -> None:
    chain.loads.room = 1
    first, second = await chain.accept(), await chain.accept()
    await chain.relay.publish_next()
    await _take(chain)
    assert newest(second.after).claimed_by is None

    await chain.collector.on_result(result(newest(first.after)).model_dump_json().encode())

    assert chain.outbox.poked.is_set()
    assert await chain.relay.claim() == 1


async def test_work_for_an_agent_with_a_pace_is_taken_from_the_ledger_at_its_pace(chain: Chain) -> None:
    chain.loads.paces[A1] = 2.0
    chain.loads.room = 0
    for _ in range(3):
        await chain.accept()
    chain.loads.room = 100

    assert chain.outbox.poked.is_set()
    assert [await chain.relay.claim() for _ in range(2)] == [2, 0]


async def test_what_was_in_a_lost_queue_is_sent_again(chain: Chain) -> None:
    change = await chain.accept()
    await chain.relay.publish_next()
    lost = await _take(chain)

    await chain.sweep.refill(A1)
    await chain.relay.claim()
    await chain.relay.publish_next()

    assert (await _take(chain)).token == lost.token == newest(change.after).token
