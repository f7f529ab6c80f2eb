"""Following a request over a real ledger."""

import asyncio
from dataclasses import replace

import pytest

from dispatcher.clock import SystemClock
from dispatcher.dispatch.collector import Collector
from dispatcher.dispatch.lifecycle.cursor import Cursor
from dispatcher.dispatch.lifecycle.request import Attempt, RequestState
from dispatcher.dispatch.outbox import Outbox
from dispatcher.dispatch.waiters import Waiters
from dispatcher.dispatch.watch import PAGE, Watcher
from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.identifiers import ReplicaId, RequestId
from tests.dispatch.builders import newest, piece, result
from tests.dispatch.conftest import Chain

QUIET_S = 60.0


@pytest.fixture
def watcher(chain: Chain) -> Watcher:
    return Watcher(ledger=chain.ledger, waiters=chain.waiters, clock=SystemClock())


def encoded(attempt: Attempt, sequence: int) -> bytes:
    return piece(attempt, sequence).model_dump_json().encode()


async def test_what_happens_is_told_as_it_happens(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    looks = watcher.follow(state.request.request_id, Cursor.start(state), QUIET_S)

    told = [[event.kind for event in await anext(looks)]]
    await chain.collector.on_result(encoded(newest(state), 0))
    told.append([event.kind for event in await anext(looks)])
    await chain.collector.on_result(result(newest(state)).model_dump_json().encode())
    told.append([event.kind for event in await anext(looks)])

    assert told == [["accepted", "plan", "decision"], ["delivery", "partial"], ["result", "answer"]]
    assert await anext(looks, None) is None


async def test_more_pieces_than_a_page_come_at_once(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    for sequence in range(2 * PAGE + 1):
        await chain.collector.on_result(encoded(newest(state), sequence))
    await chain.collector.on_result(result(newest(state)).model_dump_json().encode())

    async with asyncio.timeout(0.9):
        looks = [look async for look in watcher.follow(_id(state), Cursor.start(state), QUIET_S)]

    assert sum(event.kind == "partial" for look in looks for event in look) == 2 * PAGE + 1
    assert max(map(len, looks)) <= PAGE + 4


async def test_after_a_complete_cursor_there_is_nothing(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    await chain.collector.on_result(result(newest(state)).model_dump_json().encode())
    looks = [look async for look in watcher.follow(_id(state), Cursor.start(state), QUIET_S)]

    again = [look async for look in watcher.follow(_id(state), looks[-1][-1].cursor, QUIET_S)]

    assert again == []


async def test_silence_is_told_too(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    looks = watcher.follow(_id(state), Cursor.start(state), quiet_s=0.01)
    await anext(looks)

    assert await anext(looks) == ()
    await looks.aclose()


async def test_a_shutdown_ends_it_and_says_so(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    looks = watcher.follow(_id(state), Cursor.start(state), QUIET_S)
    await anext(looks)
    chain.waiters.release()

    assert [look async for look in looks] == [()]


async def test_the_ledger_may_be_away_for_a_while(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    looks = watcher.follow(_id(state), Cursor.start(state), QUIET_S)
    await anext(looks)
    await chain.collector.on_result(result(newest(state)).model_dump_json().encode())
    chain.ledger.unreachable = 1

    assert [event.kind for event in await anext(looks)][-2:] == ["result", "answer"]
    assert chain.ledger.unreachable == 0


async def test_without_the_ledger_it_does_not_begin(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    chain.ledger.unreachable = 1

    with pytest.raises(UnavailableError):
        await anext(watcher.follow(_id(state), Cursor.start(state), QUIET_S))


async def test_a_request_that_is_deleted_ends_it(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after

    looks = watcher.follow(RequestId("gone"), Cursor.start(state), QUIET_S)

    assert [look async for look in looks] == [()]


async def test_every_commit_here_rings_for_who_watches_and_only_the_end_for_who_waits(chain: Chain) -> None:
    state = (await chain.accept()).after
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(chain.waiters.wait(_id(state), 30))
        with chain.waiters.watched(_id(state)) as bell:
            for commit in (
                chain.books.mark_published(newest(state)),
                chain.collector.on_result(encoded(newest(state), 0)),
            ):
                await commit
                assert bell.is_set()
                bell.clear()
            assert not waiting.done()
            await chain.collector.on_result(result(newest(state)).model_dump_json().encode())
            assert bell.is_set()

    assert waiting.result().request.status == "completed"


async def test_a_piece_collected_elsewhere_wakes_the_replica_that_accepted_the_request(chain: Chain) -> None:
    state = (await chain.accept()).after
    clock = SystemClock()
    elsewhere = replace(
        chain.books,
        outbox=Outbox(replica=ReplicaId("r2"), limit=1, clock=clock),
        waiters=Waiters(ledger=chain.ledger, clock=clock, limit=1),
    )

    with chain.waiters.watched(_id(state)) as bell:
        await Collector(books=elsewhere, assigner=chain.by).on_result(encoded(newest(state), 0))

        assert bell.is_set()


async def test_the_places_are_bounded_and_come_back(chain: Chain, watcher: Watcher) -> None:
    with watcher.place(), watcher.place(), pytest.raises(OverloadedError) as refusal:
        watcher.place().__enter__()

    assert refusal.value.error_code == "too_many_waiting"
    assert chain.waiters.taken == 0


async def test_nobody_watching_leaves_nothing_behind(chain: Chain, watcher: Watcher) -> None:
    state = (await chain.accept()).after
    looks = watcher.follow(_id(state), Cursor.start(state), QUIET_S)
    await anext(looks)
    await looks.aclose()

    assert not chain.waiters._watching


def _id(state: RequestState) -> RequestId:
    return state.request.request_id
