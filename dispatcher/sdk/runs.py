"""The runs of an instance's tasks: at most one per idempotency key, until the handler has really ended (I2).

A handler that outlives its budget is answered for as `timeout`, but its key stays taken: later
attempts wait for that run and are told how it ended, or `timeout` when their own budget ends first.
"""

import asyncio
import logging
from collections.abc import Callable

from dispatcher.errors import UnavailableError
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.link import Settlement
from dispatcher.records import Struct
from dispatcher.sdk.cancellation import Cancellations
from dispatcher.sdk.handler import Handler
from dispatcher.sdk.in_hand import InHand
from dispatcher.sdk.inbox import Claim, Judgement, Verdict, serial_of
from dispatcher.sdk.load_window import LoadWindow
from dispatcher.sdk.outcome import BUSY, CANCELLED, EXPIRED, Outcome, failure, outcome_unknown
from dispatcher.sdk.parts import Parts
from dispatcher.sdk.running import Running, ending, facts
from dispatcher.sdk.telling import Teller

_log = logging.getLogger(__name__)
LEASE_UNCONFIRMED = "lease_unconfirmed"
"""The code of what is not begun because the instance may have been succeeded."""


class Arrival(Struct, frozen=True, kw_only=True):
    """A task that came, since when its budget runs (monotonic), and whether its delivery is lost.

    With `may_start` False it is only looked for, and not waited for where it runs.
    """

    task: TaskFrame
    since: float
    is_lost: Callable[[], bool]
    may_start: bool = True


class Runs:
    """Finds out how a task ended, by running it if it must be run. After `drain` nothing more starts."""

    def __init__(self, parts: Parts, teller: Teller, window: LoadWindow, in_hand: InHand) -> None:
        self._parts = parts
        self._in_hand = in_hand
        self._teller = teller
        self._window = window
        self._here: dict[str, Running] = {}
        self._cancelled = Cancellations()
        self._draining = False

    def drain(self) -> None:
        """Start nothing more."""
        self._draining = True

    def cancel(self, task_id: str) -> None:
        """Stop the task's run, if it is here; if it comes later it will not run."""
        self._cancelled.add(task_id, self._parts.clock.monotonic())
        for running in self._here.values():
            if running.task.task_id == task_id:
                running.cancel()

    async def answer(self, arrival: Arrival, group: asyncio.TaskGroup) -> Outcome | Settlement:
        """What to tell the attempt, within its budget, or what becomes of its delivery without a word.

        REQUEUE leaves it to others: it runs, and this attempt doesn't wait for that. ACK means that it
        runs on here without its delivery, and is told later. What outlives the answer is seen out in
        `group`. Raises `UnavailableError`, and nothing was started, where the inbox fails or it isn't
        sure that the lease holds.
        """
        task = arrival.task
        handler = self._parts.agent.handlers.get(task.capability)
        if handler is None:
            return failure("unknown_capability", f"no handler for {task.capability}", can_retry=True)
        while True:
            if not self._parts.fence.is_open:
                await self._behind_no_fence(arrival)
            is_here = task.idempotency_key in self._here
            # Once it is not, nothing is awaited until it is noted as being here, or two copies would pass.
            answer = await self._behind_earlier(arrival, handler) if is_here else None
            if answer is None:
                answer = await self._attempt(arrival, handler, group)
            if answer is not None:
                return answer
            if self._draining or not arrival.may_start:
                return Settlement.REQUEUE
            await self._parts.clock.sleep(self._parts.rules.look_s)

    async def _behind_earlier(self, arrival: Arrival, handler: Handler) -> Outcome | Settlement | None:
        """What comes of waiting for a run that is here, as long as the budget allows; None once it has ended.

        The wait for a long task is over as soon as its run has its lease: it goes on under this attempt,
        which is told of it.
        """
        key, budget_s = arrival.task.idempotency_key, arrival.task.budget_ms / 1000
        until = arrival.since + budget_s - self._parts.rules.kept_for_answer(budget_s)
        try:
            async with asyncio.timeout(until - self._parts.clock.monotonic()):
                while (running := self._here.get(key)) is not None and not running.is_leased:
                    if running.has_begun and not arrival.may_start:
                        return Settlement.REQUEUE
                    await running.moved()
        except TimeoutError:
            return failure("timeout", "an earlier run has not ended", can_retry=handler.idempotent)
        if running is None:
            return None
        await running.join(arrival.task, arrival.is_lost)
        return Settlement.ACK

    async def _behind_no_fence(self, arrival: Arrival) -> None:
        """Return once the lease is surely held; raises `UnavailableError` when that isn't to be had.

        Nothing is told of the task then, not even that it did not start: a successor may be at it.
        """
        fence, clock = self._parts.fence, self._parts.clock
        until = arrival.since + arrival.task.budget_ms / 1000
        while not (
            fence.is_open or await fence.opens(min(until, clock.monotonic() + self._parts.rules.look_s))
        ):
            if fence.is_lost or arrival.is_lost() or self._draining:
                raise _fenced()
            if clock.monotonic() >= until:
                await clock.sleep(self._parts.rules.pause_s)  # it may come again at once
                raise _fenced()

    async def _attempt(
        self, arrival: Arrival, handler: Handler, group: asyncio.TaskGroup
    ) -> Outcome | Settlement | None:
        """One look at the inbox and what follows from it; None while another process runs the task."""
        task, parts = arrival.task, self._parts
        elapsed_s = parts.clock.monotonic() - arrival.since
        left, in_time = task.budget_ms / 1000 - elapsed_s, elapsed_s < _start_s(task)
        may_start = in_time and arrival.may_start and not self._draining
        has_place = may_start and parts.handlers.take_place()
        running = Running(parts, self._teller, self._window, task=task, handler=handler)
        self._here[task.idempotency_key] = running
        try:
            refusal = None if has_place else BUSY if in_time else EXPIRED
            judgement = await parts.inbox.claim(_claim(running, left, refusal))
            if judgement.verdict is not Verdict.RUN:
                return _answer_without_run(task, judgement, handler, in_time=in_time, out_of_time=left <= 0)
            return await self._run(running, arrival, group)
        finally:
            if has_place and not running.has_begun:
                parts.handlers.give_back()
            self._let_go(running)

    async def _run(
        self, running: Running, arrival: Arrival, group: asyncio.TaskGroup
    ) -> Outcome | Settlement:
        """Run what was claimed; a long task goes on when this has returned."""
        if running.task.lease_ms is not None:
            await self._teller.started(running.envelope, arrival.is_lost)
        if self._is_cancelled(running.task):
            return await running.decline(CANCELLED)
        if self._is_late(arrival):
            return await running.decline(EXPIRED)
        if not self._parts.fence.is_open:  # stopped just now
            await running.decline(EXPIRED)
            raise _fenced()
        try:
            running.begin(
                arrival.since, lambda: self._is_late(arrival) or not self._parts.fence.is_open, group
            )
        except RuntimeError:  # no thread is to be had: it surely did not start, and no copy may (I2)
            _log.exception("handler.not_started", extra=facts(running.task))
            return await running.decline(BUSY)
        if running.task.lease_ms is None:
            outcome = await running.answer()
            if not running.has_ended:
                group.create_task(self._see_out(running))
            return outcome
        group.create_task(self._carry(running))
        return Settlement.ACK

    async def _carry(self, running: Running) -> None:
        """See a long run through without its delivery, as far as its result is surely told."""
        try:
            with self._in_hand:
                await running.carry()
        finally:
            self._let_go(running)
        if not running.has_ended:
            await self._see_out(running)

    async def _see_out(self, running: Running) -> None:
        """Keep the key of a run past its budget until it ends."""
        try:
            await running.see_out()
        finally:
            self._let_go(running)

    def _let_go(self, running: Running) -> None:
        """The key is free again, unless its handler is still at work."""
        if running.has_ended and self._here.get(running.task.idempotency_key) is running:
            del self._here[running.task.idempotency_key]
            running.let_go()

    def _is_late(self, arrival: Arrival) -> bool:
        return self._parts.clock.monotonic() - arrival.since >= _start_s(arrival.task)

    def _is_cancelled(self, task: TaskFrame) -> bool:
        return self._cancelled.holds(task.task_id, self._parts.clock.monotonic())


def _start_s(task: TaskFrame) -> float:
    """After so long its handler is not started any more."""
    return min(task.start_within_ms, task.budget_ms) / 1000


def _fenced() -> UnavailableError:
    return UnavailableError("the lease was not confirmed", code=LEASE_UNCONFIRMED)


def _claim(running: Running, left: float, refusal: Outcome | None) -> Claim:
    task, idempotent = running.task, running.handler.idempotent
    return Claim(
        key=task.idempotency_key,
        owner=running.owner,
        attempt=serial_of(task),
        idempotent=idempotent,
        hold_s=running.hold_s(left),
        may_start=refusal is None,
        # Declined, it may run elsewhere: a copy that comes later must not find a place here (I2).
        refusal=None if refusal is None or idempotent else refusal.encoded,
        envelope=None if task.lease_ms is None else running.envelope.encode(),
    )


def _answer_without_run(
    task: TaskFrame, judgement: Judgement, handler: Handler, *, in_time: bool, out_of_time: bool
) -> Outcome | None:
    match judgement.verdict:
        case Verdict.REPLAY if judgement.outcome is not None:
            outcome = Outcome.decode(judgement.outcome)
            _log.info("task.replayed", extra=ending(task, outcome))
            return outcome
        case Verdict.ELSEWHERE if not out_of_time:
            return None
        case Verdict.NOT_STARTED:
            return BUSY if in_time else EXPIRED
        case Verdict.FULL:
            return BUSY
    return outcome_unknown(idempotent=handler.idempotent)
