"""One delivery from arrival to settlement: what it may do, its run, its answer.

The order that makes a crash harmless: claim → run → store the outcome → publish the result,
confirmed → only then acknowledge. Whatever fails in between, the task is delivered again and
the inbox knows what to do.
"""

import asyncio
import logging
from dataclasses import dataclass, field

from pydantic import ValidationError

from dispatcher.clock import Clock
from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.protocol.frames import ResultStatus, TaskFrame
from dispatcher.protocol.link import Delivery, Link, Settlement
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.handler import Handler
from dispatcher.sdk.handler_thread import Call, HandlerThread
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
    claim_margin_s: float = 5.0
    """A claim holds for the task's budget and this much more."""
    answer_share: float = 0.05
    answer_most_s: float = 0.5
    """Kept of the budget, as a share and at most, to tell a `timeout` before the attempt lapses."""

    def kept_for_answer(self, budget_s: float) -> float:
        """The part of a budget that the handler doesn't get, in seconds."""
        return min(budget_s * self.answer_share, self.answer_most_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an intake works with; `owner` is the instance id."""

    agent: Agent
    owner: str
    link: Link
    inbox: Inbox
    handlers: HandlerThread
    clock: Clock
    rules: IntakeRules = field(default_factory=IntakeRules)


class _Given(Exception):  # noqa: N818 - a way out, not an error
    """The delivery is to be given back."""


class Intake:
    """Handles deliveries, each in a task of its own; `handle` never raises but for cancellation."""

    def __init__(self, parts: Parts, window: LoadWindow) -> None:
        self._parts = parts
        self._window = window
        self._here: dict[str, asyncio.Event] = {}
        self._in_hand = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = False

    @property
    def in_hand(self) -> int:
        """Deliveries not settled yet."""
        return self._in_hand

    async def idle(self) -> None:
        """Return once no delivery is in hand."""
        await self._idle.wait()

    async def handle(self, delivery: Delivery) -> None:
        """Process one delivery and settle it exactly once: the only place that settles (I4)."""
        self._in_hand += 1
        self._idle.clear()
        settlement = Settlement.REQUEUE
        try:
            settlement = await self._settlement(delivery.body)
        except _Given:
            pass
        except DispatcherError as error:
            _log.warning("task.given_back", extra={"reason": error.error_code})
            await self._parts.clock.sleep(self._parts.rules.pause_s)
        except Exception:  # noqa: BLE001 - one delivery must not stop the others
            _log.exception("task.given_back", extra={"reason": "internal_error"})
            await self._parts.clock.sleep(self._parts.rules.pause_s)
        finally:
            try:
                await delivery.settle(settlement)
            finally:
                self._in_hand -= 1
                if self._in_hand == 0:
                    self._idle.set()

    async def _settlement(self, body: bytes) -> Settlement:
        task = _read(body, self._parts.agent.agent_id)
        if task is None:
            return Settlement.DEAD
        outcome = await self._outcome(task)
        await self._parts.link.publish_result(outcome.answer_to(task, self._parts.owner))
        return Settlement.ACK

    async def _outcome(self, task: TaskFrame) -> Outcome:
        received = self._parts.clock.monotonic()
        handler = self._parts.agent.handlers.get(task.capability)
        if handler is None:
            return failure("unknown_capability", f"no handler for {task.capability}", can_retry=True)
        while True:
            while (running := self._here.get(task.idempotency_key)) is not None:
                await running.wait()
            outcome = await self._attempt(task, handler, received)
            if outcome is not None:
                return outcome
            await self._wait_elsewhere()

    async def _wait_elsewhere(self) -> None:
        if self.draining:
            raise _Given
        await self._parts.clock.sleep(self._parts.rules.look_s)

    async def _attempt(self, task: TaskFrame, handler: Handler, received: float) -> Outcome | None:
        """One look at the inbox and what follows from it; None while another process runs the task."""
        parts = self._parts
        elapsed = parts.clock.monotonic() - received
        left = task.budget_ms / 1000 - elapsed
        in_time = left > 0 and elapsed * 1000 < task.start_within_ms
        has_place = in_time and not self.draining and parts.handlers.take_place()
        ended = self._here[task.idempotency_key] = asyncio.Event()
        used = False
        try:
            judgement = await parts.inbox.claim(self._claim(task, handler, left, may_start=has_place))
            used = judgement.verdict is Verdict.RUN
            if used:
                return await self._run(task, handler, received + task.budget_ms / 1000)
            return _answer_without_run(judgement, handler, in_time=in_time, out_of_time=left <= 0)
        finally:
            if has_place and not used:
                parts.handlers.give_back()
            del self._here[task.idempotency_key]
            ended.set()

    def _claim(self, task: TaskFrame, handler: Handler, left: float, *, may_start: bool) -> Claim:
        return Claim(
            key=task.idempotency_key,
            owner=self._parts.owner,
            attempt=task.attempt,
            idempotent=handler.idempotent,
            hold_s=left + self._parts.rules.claim_margin_s,
            may_start=may_start,
        )

    async def _run(self, task: TaskFrame, handler: Handler, deadline: float) -> Outcome:
        parts, clock = self._parts, self._parts.clock
        began = clock.monotonic()
        kept = parts.rules.kept_for_answer(deadline - began)
        call = Call(
            handler=handler,
            fields=task.payload.input,
            view=view_of(task, lambda: max(deadline - kept - clock.monotonic(), 0.0)),
            seconds=deadline - kept - began,
            grace_s=kept / 2,
        )
        outcome = await parts.handlers.run(call)
        self._count(handler, began, outcome)
        try:
            await parts.inbox.finish(
                task.idempotency_key, parts.owner, outcome.encode(), retryable=outcome.can_retry
            )
        except UnavailableError:
            # The result is known here and now: telling it beats keeping it back.
            _log.exception("inbox.failed", extra={"task_id": task.task_id})
        return outcome

    def _count(self, handler: Handler, began: float, outcome: Outcome) -> None:
        now = self._parts.clock.monotonic()
        failed = outcome.status is ResultStatus.ERROR or outcome.business_error
        self._window.add(
            FinishedCall(capability=handler.capability, finished_at=now, seconds=now - began, failed=failed)
        )


def _answer_without_run(
    judgement: Judgement, handler: Handler, *, in_time: bool, out_of_time: bool
) -> Outcome | None:
    match judgement.verdict:
        case Verdict.REPLAY if judgement.outcome is not None:
            return Outcome.decode(judgement.outcome)
        case Verdict.ELSEWHERE if not out_of_time:
            return None
        case Verdict.NOT_STARTED:
            return BUSY if in_time else EXPIRED
        case Verdict.FULL:
            return BUSY
    return outcome_unknown(idempotent=handler.idempotent)


def _read(body: bytes, agent_id: str) -> TaskFrame | None:
    try:
        task = TaskFrame.model_validate_json(body)
    except ValidationError as error:
        _log.warning("task.unreadable", extra={"errors": error.error_count(), "bytes": len(body)})
        return None
    if task.agent_id != agent_id:
        _log.warning("task.misrouted", extra={"task_id": task.task_id, "agent_id": task.agent_id})
        return None
    return task
