"""Confirmed publishes and what they are noted together with; `Ledger` stands for what writes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.ledger import Change, Decide, Step
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import RequestId
from dispatcher.records import replace
from dispatcher.store.publications import Publications
from tests.dispatch.builders import NOW, accepted

LIMIT_S = 5
CLOCK = SystemClock()
LONG_S = 60.0


class Ledger:
    """One request; a change waits until it may be made."""

    def __init__(self) -> None:
        self.state: RequestState = accepted()
        self.changes = 0
        self.has_ended = False
        self.is_down = False
        self.begun = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def update(self, _request_id: RequestId, decide: Decide) -> Change:
        self.begun.set()
        await self.may_go_on.wait()
        if self.is_down:
            raise UnavailableError("down")
        before, self.state = self.state, decide(self.state, NOW).state
        self.changes += 1
        return Change(before=before, after=self.state, now_ms=NOW)

    @property
    def status(self) -> AttemptStatus:
        (attempt,) = self.state.attempts
        return attempt.status


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def publications_of(ledger: Ledger, wait_s: float = LONG_S) -> Publications:
    return Publications(ledger.update, lambda _: ledger.has_ended, wait_s)


def succeed(state: RequestState, _now: int) -> Step:
    attempts = tuple(replace(one, status=AttemptStatus.SUCCEEDED) for one in state.attempts)
    return Step(state=replace(state, attempts=attempts))


def touch(state: RequestState, _now: int) -> Step:
    return Step(state=replace(state, request=replace(state.request, language="zh")))


@asynccontextmanager
async def noted(publications: Publications, ledger: Ledger) -> AsyncIterator[asyncio.Task[None]]:
    """A publish that is being noted inside the block, and is noted in the end."""
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        note = group.create_task(publications.note(ledger.state.attempts[0]))
        await CLOCK.sleep(0)
        yield note


async def test_a_publish_waits_for_the_next_change_of_its_request(ledger: Ledger):
    publications = publications_of(ledger)

    async with noted(publications, ledger):
        await publications.update(ledger.state.request.request_id, touch)

    assert ledger.changes == 1
    assert ledger.status is AttemptStatus.PUBLISHED


async def test_a_publish_without_company_is_noted_by_itself(ledger: Ledger):
    publications = publications_of(ledger, wait_s=0.001)

    async with noted(publications, ledger):
        pass

    assert ledger.changes == 1
    assert ledger.status is AttemptStatus.PUBLISHED


async def test_a_publish_whose_company_failed_is_noted_by_itself(ledger: Ledger):
    publications = publications_of(ledger)
    ledger.is_down = True

    async with noted(publications, ledger):
        with pytest.raises(UnavailableError):
            await publications.update(ledger.state.request.request_id, touch)
        ledger.is_down = False

    assert ledger.status is AttemptStatus.PUBLISHED


async def test_a_publish_confirmed_while_its_result_is_stored_writes_nothing_more(ledger: Ledger):
    publications = publications_of(ledger)
    ledger.may_go_on.clear()

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        group.create_task(publications.update(ledger.state.request.request_id, succeed))
        await ledger.begun.wait()
        group.create_task(publications.note(ledger.state.attempts[0]))
        await CLOCK.sleep(0)
        ledger.may_go_on.set()

    assert ledger.changes == 1
    assert ledger.status is AttemptStatus.SUCCEEDED


async def test_a_publish_confirmed_while_something_else_is_stored_waits_on(ledger: Ledger):
    publications = publications_of(ledger)
    request_id = ledger.state.request.request_id
    ledger.may_go_on.clear()

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        change = group.create_task(publications.update(request_id, touch))
        await ledger.begun.wait()
        group.create_task(publications.note(ledger.state.attempts[0]))
        await CLOCK.sleep(0)
        ledger.may_go_on.set()
        await asyncio.wait([change])
        await publications.update(request_id, touch)

    assert ledger.changes == 2
    assert ledger.status is AttemptStatus.PUBLISHED


async def test_a_publish_confirmed_after_its_request_ended_writes_nothing(ledger: Ledger):
    ledger.has_ended = True

    await publications_of(ledger).note(ledger.state.attempts[0])

    assert ledger.changes == 0


async def test_a_caller_that_left_leaves_nothing_to_be_noted(ledger: Ledger):
    publications = publications_of(ledger)

    async with noted(publications, ledger) as note:
        note.cancel()
    await publications.update(ledger.state.request.request_id, touch)

    assert ledger.status is AttemptStatus.DUE
