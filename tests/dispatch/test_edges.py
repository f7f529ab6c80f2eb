"""Relay, collector and waiters over a real ledger."""

import asyncio

import pytest

from dispatcher.dispatch.ledger import Decide
from dispatcher.dispatch.request import AttemptStatus, RequestStatus, TaskStatus
from dispatcher.dispatch.settle import settle
from dispatcher.errors import OverloadedError, RequestError
from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.intents.plan import Entity, EntityKind
from dispatcher.protocol.frames import ResultFrame, ResultStatus, TaskFrame
from dispatcher.protocol.link import Settlement
from tests.dispatch.builders import QUOTE, assigner, intent, link, newest, result
from tests.dispatch.conftest import Chain

A1 = AgentId("a1")


async def _take(chain: Chain) -> TaskFrame:
    async with asyncio.timeout(5), chain.channel.link().deliveries(A1, 1) as deliveries:
        delivery = await anext(deliveries)
        await delivery.settle(Settlement.ACK)
        return TaskFrame.model_validate_json(delivery.body)


async def test_an_accepted_attempt_reaches_its_agent_with_what_remains_of_its_time(chain: Chain) -> None:
    amount = Entity(kind=EntityKind.AMOUNT, text="¥5", value=5.0, start=0, end=2)
    change = await chain.accept(intent(0, entities=(amount,)))

    await chain.relay.publish(await chain.outbox.take())

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
    await chain.relay.publish(await chain.outbox.take())
    await _take(chain)

    await chain.collector.on_result(result(newest(change.after)).model_dump_json().encode())
    await chain.relay.publish(await chain.outbox.take())

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
    await chain.relay.publish(await chain.outbox.take())

    state = await chain.ledger.read(change.after.request.request_id)
    assert state is not None
    assert [a.agent_id for a in state.attempts] == ["a1", "a2", "a1"]
    assert state.attempts[1].error_code == "unroutable"
    assert state.tasks[0].status is TaskStatus.OPEN


async def test_unclaimed_work_is_found_by_any_relay_as_far_as_its_agent_has_room(chain: Chain) -> None:
    unclaimed = assigner(has_room=lambda _: False)
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
