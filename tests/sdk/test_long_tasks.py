"""Long tasks: settled when they start, leased while they run, told when they end, also after a restart."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import OutcomeUnknownError
from dispatcher.protocol.frames import RenewFrame, ResultStatus, StartedFrame, TaskFrame
from dispatcher.protocol.link import Settlement
from dispatcher.sdk.envelope import envelope_of
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.inbox import Claim
from dispatcher.sdk.leftovers import Leftovers
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.outcome import Outcome, failure
from dispatcher.sdk.parts import Parts
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from tests.sdk.stub_link import StubDelivery, StubLink, task_frame
from tests.sdk.working import Work, cancelling, handled, intake_of

LEASE_MS = 60


def long_task(capability: str = "work.wait", **more) -> TaskFrame:
    return task_frame(capability, **{"lease_ms": LEASE_MS, "budget_ms": 60_000, **more})


def delivery_of(task: TaskFrame) -> StubDelivery:
    return StubDelivery(task.model_dump_json().encode())


async def test_it_is_started_settled_renewed_and_told_in_this_order():
    work, link = Work(), StubLink()
    delivery = delivery_of(long_task())
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(intake.handle(delivery))
        await work.began.wait()
        settlement = await delivery.settlement()
        signals = [await link.signal() for _ in range(3)]
        work.finish()
        result = await link.result()

    assert settlement is Settlement.ACK
    assert [type(signal) for signal in signals] == [StartedFrame, RenewFrame, RenewFrame]
    assert {(signal.attempt, signal.token) for signal in signals} == {(1, "token-of-attempt-1")}
    assert result.result.text == "run 1"
    assert link.reports[-1] == "result"


async def test_until_started_is_confirmed_the_delivery_is_kept():
    work, link = Work(), StubLink()
    link.publish_errors = [OutcomeUnknownError("no confirm")] * 2
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, long_task("work.do"))

    assert await delivery.settlement() is Settlement.ACK
    assert link.reports == ["started", "result"]
    assert link.tries == 4


async def test_its_result_is_told_until_it_is_confirmed():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, long_task(lease_ms=60_000)))
        await work.began.wait()
        link.publish_errors = [OutcomeUnknownError("no confirm")] * 3
        work.finish()
        result = await link.result()

    assert result.status is ResultStatus.SUCCESS


async def test_a_later_attempt_joins_the_run_and_has_its_lease_and_result():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, long_task()))
        await work.began.wait()
        later = await handled(intake, long_task(attempt=2))
        while not isinstance(signal := await link.signal(), RenewFrame) or signal.attempt == 1:
            continue
        work.finish()
        result = await link.result()

    assert await later.settlement() is Settlement.ACK
    assert (signal.attempt, result.attempt, result.token) == (2, 2, "token-of-attempt-2")
    assert link.results.empty()
    assert len(work.runs) == 1


async def test_a_drain_waits_for_it():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, long_task()))
        await work.began.wait()
        await link.signal()
        intake.drain()
        assert intake.in_hand == 1
        work.finish()
        await intake.idle()

    assert (await link.result()).status is ResultStatus.SUCCESS


async def test_a_drain_that_waits_already_waits_for_it_too():
    work, link, inbox = Work(), StubLink(), SlowInbox()
    async with intake_of(work, link, inbox) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, long_task()))
        await inbox.asked.wait()
        drained = group.create_task(intake.idle())
        await SystemClock().sleep(0)
        inbox.answers.set()
        await work.began.wait()
        was_drained = drained.done()
        work.finish()

    assert not was_drained
    assert (await link.result()).status is ResultStatus.SUCCESS


class SlowInbox(MemoryInbox):
    """Answers a claim when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def claim(self, claim):
        self.asked.set()
        await self.answers.wait()
        return await super().claim(claim)


async def test_past_its_time_it_is_told_as_timeout_and_its_key_stays_taken():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, long_task("work.block", budget_ms=50)))
        first = await link.result()
        group.create_task(handled(intake, long_task("work.block", attempt=2)))
        work.let_go.set()
        second = await link.result()

    assert (first.error_code, second.result.text) == ("timeout", "run 1")
    assert len(work.runs) == 1


async def test_cancelled_it_is_told_as_such():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, long_task()))
        await work.began.wait()
        intake.cancel(cancelling("task-request-1:0"))

    assert (await link.result()).error_code == "cancelled"


async def test_declined_it_leaves_nothing_to_tell_again(tmp_path: Path):
    work, link = Work(), StubLink()
    async with (
        aclosing(await SqliteInbox.open(tmp_path / "inbox.sqlite")) as inbox,
        intake_of(work, link, inbox) as intake,
    ):
        intake.cancel(cancelling("task-request-1:0"))
        delivery = await handled(intake, long_task())

        assert await delivery.settlement() is Settlement.ACK
        assert (await link.result()).error_code == "cancelled"
        await inbox._call(lambda: inbox._connection.execute("UPDATE inbox SET expires_at = 0"))
        assert await inbox.untold("a restarted instance") == ()


def parts_of(work: Work, link: StubLink, inbox: SqliteInbox) -> Parts:
    return Parts(
        agent=work.agent,
        owner="instance-2",
        link=link,
        inbox=inbox,
        handlers=HandlerThread(1),
        clock=SystemClock(),
    )


async def begun(inbox: SqliteInbox, task: TaskFrame, outcome: Outcome | None) -> None:
    """What `instance-1` leaves behind when it dies before it could tell."""
    await inbox.claim(
        Claim(
            key=task.idempotency_key,
            owner="instance-1",
            attempt=task.attempt,
            idempotent=False,
            hold_s=60.0,
            envelope=envelope_of(task).encode(),
        )
    )
    if outcome is not None:
        await inbox.finish(task.idempotency_key, "instance-1", outcome.encoded, retryable=False)


@pytest.mark.parametrize(
    ("outcome", "told"), [(failure("broken", "why"), "broken"), (None, "outcome_unknown")]
)
async def test_after_a_restart_what_was_not_told_is_told_once(tmp_path: Path, outcome, told):
    work, link = Work(), StubLink()
    path = tmp_path / "inbox.sqlite"
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await begun(inbox, long_task("work.once"), outcome)

    async with aclosing(await SqliteInbox.open(path)) as inbox:
        leftovers = Leftovers(parts_of(work, link, inbox))
        await leftovers.tell()
        await leftovers.tell()

    result = await link.result()
    assert (result.error_code, result.token, result.can_retry) == (told, "token-of-attempt-1", False)
    assert link.tries == 1


async def test_an_idempotent_run_that_broke_off_may_be_tried_again(tmp_path: Path):
    work, link = Work(), StubLink()
    path = tmp_path / "inbox.sqlite"
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await begun(inbox, long_task(), None)

    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await Leftovers(parts_of(work, link, inbox)).tell()

    assert (await link.result()).can_retry


async def test_a_claim_lasts_as_long_as_the_lease_and_no_longer():
    held: list[float] = []

    class Watched(MemoryInbox):
        async def claim(self, claim):
            held.append(claim.hold_s)
            return await super().claim(claim)

    work, link = Work(), StubLink()
    async with intake_of(work, link, Watched()) as intake:
        await handled(intake, long_task("work.do", lease_ms=1_000, budget_ms=3_600_000))

    assert held == [6.0]
