"""One delivery from arrival to settlement (I2, I4, I5)."""

import asyncio

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.protocol.frames import ResultStatus
from dispatcher.protocol.link import Settlement
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.inbox import Claim, Judgement
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.parts import IntakeRules
from tests.sdk.stub_link import WAIT_S, StubDelivery, StubLink, task_frame
from tests.sdk.working import Work, handled, intake_of


async def test_a_task_is_run_answered_and_acknowledged():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame())

    result = await link.result()
    assert await delivery.settlement() is Settlement.ACK
    assert (result.status, result.result.text) == (ResultStatus.SUCCESS, "run 1")
    assert (result.token, result.instance_id) == ("token-of-attempt-1", "instance-1")
    assert (work.runs[0].user_id, work.runs[0].language) == ("u1001", "zh")
    assert 0 < work.runs[0].time_left() <= 30


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b'{"v": 2, "type": "task"}', b"[1]"])
async def test_an_unreadable_frame_is_dead(body):
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, body)

    assert await delivery.settlement() is Settlement.DEAD
    assert link.results.empty()


async def test_a_frame_for_another_agent_is_dead():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame(agent_id="other"))

    assert await delivery.settlement() is Settlement.DEAD


async def test_a_task_for_an_unknown_capability_may_be_tried_elsewhere():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame("work.unheard"))

    result = await link.result()
    assert await delivery.settlement() is Settlement.ACK
    assert (result.error_code, result.can_retry) == ("unknown_capability", True)


async def test_a_redelivery_replays_the_stored_result():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.once"))
        await handled(intake, task_frame("work.once"))

    first, second = await link.result(), await link.result()
    assert first == second
    assert len(work.runs) == 1


async def test_a_later_attempt_gets_the_stored_result_under_its_own_token():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.once"))
        await handled(intake, task_frame("work.once", attempt=2))

    await link.result()
    replay = await link.result()
    assert (replay.attempt, replay.token) == (2, "token-of-attempt-2")
    assert replay.result.text == "run 1"


async def test_a_later_attempt_runs_again_after_a_retryable_failure():
    work, link = Work(), StubLink()
    work.fail_first = 1
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame())
        await handled(intake, task_frame(attempt=2))

    failed, succeeded = await link.result(), await link.result()
    assert (failed.status, failed.error_code, failed.can_retry) == (ResultStatus.ERROR, "agent_error", True)
    assert (succeeded.status, len(work.runs)) == (ResultStatus.SUCCESS, 2)


async def test_a_failure_of_what_is_not_idempotent_is_never_repeated():
    work, link = Work(), StubLink()
    work.fail_first = 1
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.once"))
        await handled(intake, task_frame("work.once", attempt=2))

    assert not (await link.result()).can_retry
    assert (await link.result()).status is ResultStatus.ERROR
    assert len(work.runs) == 1


async def test_what_failed_for_good_runs_again_when_an_operator_repeats_it_if_it_is_idempotent():
    work, link = Work(), StubLink()
    work.fail_first = 1
    async with intake_of(work, link) as intake:
        for repeat in (0, 1):
            await handled(intake, task_frame("work.once", repeat=repeat))
            await handled(intake, task_frame("work.do", key="request-1:1", repeat=repeat))

    results = [await link.result() for _ in range(4)]
    assert [result.error_code for result in results] == ["agent_error", None, "agent_error", None]
    assert len(work.runs) == 2


async def test_deliveries_of_a_running_task_wait_for_its_one_run():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.wait")))
        await work.began.wait()
        group.create_task(handled(intake, task_frame("work.wait")))
        group.create_task(handled(intake, task_frame("work.wait", attempt=2)))
        work.finish()

    results = [await link.result() for _ in range(3)]
    assert sorted(result.attempt for result in results) == [1, 1, 2]
    assert {result.result.text for result in results} == {"run 1"}
    assert len(work.runs) == 1


@pytest.mark.parametrize("late", [{"start_within_ms": 0}, {"budget_ms": 0}])
async def test_a_task_that_comes_too_late_is_expired_without_running(late):
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame(**late))

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).status is ResultStatus.EXPIRED
    assert not work.runs


async def test_a_stored_result_is_replayed_even_when_it_is_too_late_to_start():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame())
        await handled(intake, task_frame(attempt=2, start_within_ms=0))

    await link.result()
    assert (await link.result()).status is ResultStatus.SUCCESS


async def test_without_a_free_place_the_answer_is_busy():
    work, link = Work(max_load=1), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.wait")))
        await work.began.wait()
        await handled(intake, task_frame(key="request-1:1"))
        work.finish()

    assert (await link.result()).status is ResultStatus.BUSY
    assert len(work.runs) == 1


async def test_a_full_inbox_is_busy_and_its_place_is_free_again():
    work, link = Work(max_load=1), StubLink()
    inbox = MemoryInbox(max_keys=1)
    await inbox.claim(Claim(key="held", owner="x", attempt=1, idempotent=True, hold_s=60))
    async with intake_of(work, link, inbox) as intake:
        await handled(intake, task_frame())
        await inbox.finish("held", "x", b"done", retryable=False)
        await handled(intake, task_frame())

    assert (await link.result()).status is ResultStatus.BUSY
    assert (await link.result()).status is ResultStatus.SUCCESS


async def test_while_draining_new_work_is_busy():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        intake.drain()
        await handled(intake, task_frame())

    assert (await link.result()).status is ResultStatus.BUSY
    assert not work.runs


async def test_what_another_process_runs_is_answered_with_its_result():
    work, link, inbox = Work(), StubLink(), MemoryInbox()
    other = Work()
    async with (
        intake_of(other, link, inbox, owner="instance-2") as elsewhere,
        intake_of(work, link, inbox) as intake,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(handled(elsewhere, task_frame("work.wait")))
        await other.began.wait()
        group.create_task(handled(intake, task_frame("work.wait", attempt=2)))
        other.finish()

    texts = {(await link.result()).result.text, (await link.result()).result.text}
    assert texts == {"run 1"}
    assert not work.runs


async def test_what_another_process_runs_is_given_back_while_draining():
    work, link, inbox = Work(), StubLink(), MemoryInbox()
    await inbox.claim(Claim(key="request-1:0", owner="x", attempt=1, idempotent=True, hold_s=60))
    async with intake_of(work, link, inbox) as intake:
        intake.drain()
        delivery = await handled(intake, task_frame())

    assert await delivery.settlement() is Settlement.REQUEUE


async def test_what_another_process_never_finishes_is_unknown_when_the_budget_ends():
    work, link, inbox = Work(), StubLink(), MemoryInbox()
    await inbox.claim(Claim(key="request-1:0", owner="x", attempt=1, idempotent=False, hold_s=60))
    async with intake_of(work, link, inbox) as intake:
        delivery = await handled(intake, task_frame("work.once", attempt=2, budget_ms=20))

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).error_code == "outcome_unknown"


@pytest.mark.parametrize(("capability", "runs"), [("work.do", 1), ("work.once", 0)])
async def test_after_a_crash_only_an_idempotent_task_runs_again(capability, runs):
    work, link, inbox = Work(), StubLink(), MemoryInbox()
    await inbox.claim(Claim(key="request-1:0", owner="crashed", attempt=1, idempotent=False, hold_s=0))
    async with intake_of(work, link, inbox) as intake:
        await handled(intake, task_frame(capability))

    result = await link.result()
    assert len(work.runs) == runs
    assert result.error_code == (None if runs else "outcome_unknown")
    assert not result.can_retry


class BrokenInbox(MemoryInbox):
    """Fails at the step named."""

    def __init__(self, step: str, error: Exception) -> None:
        super().__init__()
        self._step = step
        self._error = error

    async def claim(self, claim):
        if self._step == "claim":
            raise self._error
        return await super().claim(claim)

    async def finish(self, key, owner, outcome, *, retryable, failed=False):
        raise self._error


@pytest.mark.parametrize("error", [UnavailableError("disk"), RuntimeError("a bug")])
async def test_without_the_inbox_nothing_runs_and_the_task_is_given_back(error):
    work, link = Work(), StubLink()
    async with intake_of(work, link, BrokenInbox("claim", error)) as intake:
        delivery = await handled(intake, task_frame(budget_ms=50))

    assert await delivery.settlement() is Settlement.REQUEUE
    assert not work.runs
    assert intake.in_hand == 0


@pytest.mark.parametrize("error", [UnavailableError("disk"), RuntimeError("a bug")])
async def test_a_result_is_told_even_when_it_could_not_be_stored(error):
    work, link = Work(), StubLink()
    async with intake_of(work, link, BrokenInbox("finish", error)) as intake:
        delivery = await handled(intake, task_frame())

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).status is ResultStatus.SUCCESS


class Threadless(HandlerThread):
    """Has places, and no thread to run anything in for the first time."""

    fails = True

    def start(self, call):
        if self.fails:
            self.fails = False
            raise RuntimeError("can't start new thread")
        return super().start(call)


@pytest.mark.parametrize("lease_ms", [None, 60_000])
async def test_what_no_thread_could_be_had_for_has_not_started(lease_ms):
    work, link = Work(max_load=1), StubLink()
    async with (
        Threadless(1) as handlers,
        intake_of(work, link, handlers=handlers) as intake,
        asyncio.timeout(WAIT_S),
    ):
        for attempt in (1, 1, 2):
            await handled(intake, task_frame("work.once", attempt=attempt, lease_ms=lease_ms))
        results = [await link.result() for _ in range(3)]

    assert [(result.attempt, str(result.status)) for result in results] == [
        (1, "busy"),
        (1, "busy"),
        (2, "success"),
    ]


async def test_a_cancelled_delivery_is_given_back():
    work, link = Work(), StubLink()
    delivery = StubDelivery(task_frame("work.wait").model_dump_json().encode())
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        task = group.create_task(intake.handle(delivery))
        await work.began.wait()
        task.cancel()

    assert await delivery.settlement() is Settlement.REQUEUE
    await intake.idle()


async def test_a_handler_past_its_budget_is_answered_as_timeout():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame("work.wait", budget_ms=50))

    result = await link.result()
    assert await delivery.settlement() is Settlement.ACK
    assert (result.error_code, result.can_retry) == ("timeout", True)


def test_a_part_of_the_budget_is_kept_for_the_answer():
    rules = IntakeRules()

    assert rules.kept_for_answer(1.0) == pytest.approx(0.05)
    assert rules.kept_for_answer(30.0) == 0.5


async def test_a_handler_sees_less_time_than_the_budget():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame(budget_ms=10_000))

    assert work.runs[0].time_left() <= 9.5


class Reluctant(MemoryInbox):
    """An inbox that can't be reached so often."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    async def claim(self, claim: Claim) -> Judgement:
        self.failures -= 1
        if self.failures >= 0:
            raise UnavailableError("the inbox is away")
        return await super().claim(claim)


async def test_an_inbox_that_is_away_is_asked_again_and_the_delivery_is_not_given_back_for_it():
    work, link = Work(), StubLink()
    async with intake_of(work, link, Reluctant(failures=9)) as intake:
        delivery = await handled(intake, task_frame(budget_ms=60_000))

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).result.text == "run 1"


async def test_an_inbox_that_stays_away_has_the_delivery_given_back_at_the_end_of_its_budget():
    work, link = Work(), StubLink()
    async with intake_of(work, link, Reluctant(failures=1_000_000)) as intake:
        delivery = await handled(intake, task_frame(budget_ms=50))

    assert await delivery.settlement() is Settlement.REQUEUE
    assert work.runs == []
