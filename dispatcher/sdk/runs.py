"""The runs of an instance's tasks: at most one per idempotency key, until the handler has really ended (I2).

A handler that outlives its budget is answered for as `timeout`, but its key stays taken: later
attempts wait for that run and are told how it ended, or `timeout` when their own budget ends first.
"""

import asyncio
import logging
import random
from dataclasses import dataclass, field

from dispatcher.clock import Clock
from dispatcher.protocol.frames import ResultStatus, TaskFrame
from dispatcher.protocol.link import Link
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.backoff import BackoffRules
from dispatcher.sdk.handler import Handler
from dispatcher.sdk.handler_thread import Call, HandlerThread, Run
from dispatcher.sdk.inbox import Claim, Inbox, Judgement, Verdict
from dispatcher.sdk.load_window import FinishedCall, LoadWindow
from dispatcher.sdk.outcome import BUSY, EXPIRED, Outcome, failure, outcome_unknown
from dispatcher.sdk.task_view import view_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRules:
    """Seconds: a pause before a delivery is given back, and between two looks at a run elsewhere."""

    pause_s: float = 1.0
    look_s: float = 1.0
    publish: BackoffRules = field(default_factory=BackoffRules)
    """Between two tries to publish a result."""
    claim_margin_s: float = 5.0
    """A claim holds for the task's budget and this much more; past the budget it is held again every half."""
    answer_share: float = 0.05
    answer_most_s: float = 0.5
    """Kept of the budget, as a share and at most, to tell a `timeout` before the attempt lapses."""

    def kept_for_answer(self, budget_s: float) -> float:
        """The part of a budget that the handler doesn't get, in seconds."""
        return min(budget_s * self.answer_share, self.answer_most_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an instance works with; `owner` is its id."""

    agent: Agent
    owner: str
    link: Link
    inbox: Inbox
    handlers: HandlerThread
    clock: Clock
    rules: IntakeRules = field(default_factory=IntakeRules)
    chance: random.Random = field(default_factory=random.Random)  # noqa: S311 - keeps no secret
    """Spreads the tries of many instances."""


class Runs:
    """Finds out how a task ended, by running it if it must be run. After `drain` nothing more starts."""

    def __init__(self, parts: Parts, window: LoadWindow) -> None:
        self._parts = parts
        self._window = window
        self._here: dict[str, asyncio.Event] = {}
        self._draining = False

    def drain(self) -> None:
        """Start nothing more."""
        self._draining = True

    async def outcome(self, task: TaskFrame, group: asyncio.TaskGroup) -> Outcome | None:
        """What to tell the attempt, within its budget; None to leave the task to others.

        What outlives the budget is seen out in `group`.
        """
        received = self._parts.clock.monotonic()
        handler = self._parts.agent.handlers.get(task.capability)
        if handler is None:
            return failure("unknown_capability", f"no handler for {task.capability}", can_retry=True)
        while True:
            if not await self._here_no_more(task, received):
                return failure("timeout", "an earlier run has not ended", can_retry=handler.idempotent)
            outcome = await self._attempt(task, handler, received, group)
            if outcome is not None or self._draining:
                return outcome
            await self._parts.clock.sleep(self._parts.rules.look_s)

    async def _here_no_more(self, task: TaskFrame, received: float) -> bool:
        """Wait while the task runs here, as long as the budget allows; False when it still runs."""
        if task.idempotency_key not in self._here:
            return True
        budget_s = task.budget_ms / 1000
        until = received + budget_s - self._parts.rules.kept_for_answer(budget_s)
        try:
            async with asyncio.timeout(until - self._parts.clock.monotonic()):
                while (ended := self._here.get(task.idempotency_key)) is not None:
                    await ended.wait()
        except TimeoutError:
            return False
        return True

    async def _attempt(
        self, task: TaskFrame, handler: Handler, received: float, group: asyncio.TaskGroup
    ) -> Outcome | None:
        """One look at the inbox and what follows from it; None while another process runs the task."""
        parts = self._parts
        elapsed = parts.clock.monotonic() - received
        left = task.budget_ms / 1000 - elapsed
        in_time = left > 0 and elapsed * 1000 < task.start_within_ms
        has_place = in_time and not self._draining and parts.handlers.take_place()
        self._here[task.idempotency_key] = asyncio.Event()
        run: Run | None = None
        try:
            judgement = await parts.inbox.claim(self._claim(task, handler, left, may_start=has_place))
            if judgement.verdict is not Verdict.RUN:
                return _answer_without_run(task, judgement, handler, in_time=in_time, out_of_time=left <= 0)
            has_place = False  # the run has it now
            run = self._start(task, handler, received + task.budget_ms / 1000)
            return await self._answer(task, run, group)
        finally:
            if has_place:
                parts.handlers.give_back()
            if run is None or run.has_ended:
                self._release(task)

    def _claim(self, task: TaskFrame, handler: Handler, left: float, *, may_start: bool) -> Claim:
        return Claim(
            key=task.idempotency_key,
            owner=self._parts.owner,
            attempt=task.attempt,
            idempotent=handler.idempotent,
            hold_s=left + self._parts.rules.claim_margin_s,
            may_start=may_start,
        )

    def _start(self, task: TaskFrame, handler: Handler, deadline: float) -> Run:
        clock = self._parts.clock
        began = clock.monotonic()
        kept = self._parts.rules.kept_for_answer(deadline - began)
        call = Call(
            handler=handler,
            fields=task.payload.input,
            view=view_of(task, lambda: max(deadline - kept - clock.monotonic(), 0.0)),
            seconds=deadline - kept - began,
            grace_s=kept / 2,
        )
        return self._parts.handlers.start(call)

    async def _answer(self, task: TaskFrame, run: Run, group: asyncio.TaskGroup) -> Outcome:
        began = self._parts.clock.monotonic()
        outcome = await run.answer()
        self._count(task, began, outcome)
        if run.has_ended:
            await self._end(task, began, outcome)
        else:
            group.create_task(self._see_out(task, run, began))
        return outcome

    async def _see_out(self, task: TaskFrame, run: Run, began: float) -> None:
        """Keep the claim of a run past its budget until it ends, and store how; the key is free then.

        Cancelled, it leaves the key taken: the handler may still be at work.
        """
        margin_s = self._parts.rules.claim_margin_s
        try:
            while (outcome := await run.end_within(margin_s / 2)) is None:
                await self._hold(task, margin_s)
            await self._end(task, began, outcome)
        finally:
            if run.has_ended:
                self._release(task)

    async def _hold(self, task: TaskFrame, seconds: float) -> None:
        try:
            await self._parts.inbox.hold(task.idempotency_key, self._parts.owner, seconds)
        except Exception:  # noqa: BLE001 - whatever ails the inbox, the run has to be seen out
            _log.exception("inbox.failed", extra=_facts(task))

    async def _end(self, task: TaskFrame, began: float, outcome: Outcome) -> None:
        """Log and store how the run really ended, which a late one has not been told as."""
        elapsed_ms = round((self._parts.clock.monotonic() - began) * 1000)
        _log.info("task.ended", extra={**_ending(task, outcome), "elapsed_ms": elapsed_ms})
        try:
            await self._parts.inbox.finish(
                task.idempotency_key, self._parts.owner, outcome.encode(), retryable=outcome.can_retry
            )
        except Exception:  # noqa: BLE001 - the result is known here and now: telling it beats keeping it back
            _log.exception("inbox.failed", extra=_facts(task))

    def _release(self, task: TaskFrame) -> None:
        self._here.pop(task.idempotency_key).set()

    def _count(self, task: TaskFrame, began: float, outcome: Outcome) -> None:
        now = self._parts.clock.monotonic()
        failed = outcome.status is ResultStatus.ERROR or outcome.business_error
        self._window.add(
            FinishedCall(capability=task.capability, finished_at=now, seconds=now - began, failed=failed)
        )


def _answer_without_run(
    task: TaskFrame, judgement: Judgement, handler: Handler, *, in_time: bool, out_of_time: bool
) -> Outcome | None:
    match judgement.verdict:
        case Verdict.REPLAY if judgement.outcome is not None:
            outcome = Outcome.decode(judgement.outcome)
            _log.info("task.replayed", extra=_ending(task, outcome))
            return outcome
        case Verdict.ELSEWHERE if not out_of_time:
            return None
        case Verdict.NOT_STARTED:
            return BUSY if in_time else EXPIRED
        case Verdict.FULL:
            return BUSY
    return outcome_unknown(idempotent=handler.idempotent)


def _ending(task: TaskFrame, outcome: Outcome) -> dict[str, object]:
    return {**_facts(task), "status": outcome.status, "error_code": outcome.error_code}


def _facts(task: TaskFrame) -> dict[str, object]:
    return {
        "agent_id": task.agent_id,
        "request_id": task.request_id,
        "task_id": task.task_id,
        "capability": task.capability,
        "attempt": task.attempt,
    }
