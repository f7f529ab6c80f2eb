"""One task that runs here: from its claim to the handler's end, and what is said of it meanwhile."""

import asyncio
import logging
from collections.abc import Callable

from dispatcher.errors import DispatcherError
from dispatcher.protocol.frames import (
    PartialFrame,
    ProgressFrame,
    RenewFrame,
    ResultBody,
    TaskFrame,
)
from dispatcher.sdk.envelope import Envelope, envelope_of
from dispatcher.sdk.handler import Handler
from dispatcher.sdk.handler_call import Call
from dispatcher.sdk.handler_thread import Run
from dispatcher.sdk.inbox import serial_of
from dispatcher.sdk.load_window import FinishedCall, LoadWindow
from dispatcher.sdk.outcome import CANCELLED, Outcome
from dispatcher.sdk.parts import Parts
from dispatcher.sdk.pieces import Pieces
from dispatcher.sdk.progress import Progress
from dispatcher.sdk.task_view import view_of
from dispatcher.sdk.telling import Teller

_log = logging.getLogger(__name__)


class Running:
    """The one run of a key in this process. `task` is the newest attempt that asked for it."""

    def __init__(
        self, parts: Parts, teller: Teller, window: LoadWindow, *, task: TaskFrame, handler: Handler
    ) -> None:
        self._parts = parts
        self._teller = teller
        self._window = window
        self.task = task
        self.handler = handler
        self.owner = parts.owner
        self._lease_s = None if task.lease_ms is None else task.lease_ms / 1000
        self._run: Run | None = None
        self._pieces: Pieces | None = None
        self._progress: Progress | None = None
        self._began = 0.0
        self._is_over = False
        self._change: asyncio.Event | None = None

    @property
    def envelope(self) -> Envelope:
        """What is said of it comes under."""
        return envelope_of(self.task)

    @property
    def has_begun(self) -> bool:
        """Whether the handler was started."""
        return self._run is not None

    @property
    def has_ended(self) -> bool:
        """Whether no handler is at work, be it that none was started."""
        return self._run is None or self._run.has_ended

    @property
    def is_leased(self) -> bool:
        """Whether it runs on without a delivery, within its time."""
        return self._run is not None and self._lease_s is not None and not self._is_over

    async def moved(self) -> None:
        """Return once it is leased, or has let go of its key, after now."""
        self._change = self._change or asyncio.Event()
        await self._change.wait()

    def let_go(self) -> None:
        """The key is free again."""
        self._note_change()

    def hold_s(self, left: float) -> float:
        """How long a claim holds: a long task's is renewed with its lease."""
        lasts = left if self._lease_s is None else min(left, self._lease_s)
        return lasts + self._parts.rules.claim_margin_s

    def begin(self, since: float, is_late: Callable[[], bool], group: asyncio.TaskGroup) -> None:
        """Start the handler in a place taken before; its signals are sent in `group`."""
        clock = self._parts.clock
        self._began = clock.monotonic()
        deadline = since + self.task.budget_ms / 1000
        kept = self._parts.rules.kept_for_answer(deadline - self._began)
        self._progress = Progress(self._send_progress, group, clock)
        self._pieces = Pieces(self._send_piece, group) if self.handler.signature.is_stream else None
        call = Call(
            handler=self.handler,
            fields=self.task.payload.input,
            view=view_of(self.task, lambda: max(deadline - kept - clock.monotonic(), 0.0), self._progress),
            seconds=deadline - kept - self._began,
            grace_s=kept / 2,
            is_late=is_late,
            put=None if self._pieces is None else self._pieces.put,
        )
        self._run = self._parts.handlers.start(call)
        if self.is_leased:
            self._note_change()

    def cancel(self) -> None:
        """Tell the handler to stop."""
        if self._run is not None:
            self._run.cancel()

    async def decline(self, outcome: Outcome) -> Outcome:
        """End what was claimed without running it; its delivery is still there to be answered."""
        await self._store(outcome)
        if self._lease_s is not None:
            await self._parts.inbox.told(self.task.idempotency_key, self._parts.owner)
        return outcome

    async def answer(self) -> Outcome:
        """What is told of the run within its budget, stored if the handler has ended by then."""
        run = self._started()
        outcome = await run.answer()
        self._is_over = True
        self._count(outcome)
        if run.has_ended or run.is_cancelled:
            await self._store(outcome)
        await self._end_signals()
        return outcome

    async def carry(self) -> None:
        """Keep the lease of a long run until its result is stored and surely told."""
        async with asyncio.TaskGroup() as beside:
            renewing = beside.create_task(self._renew(self._lease_s or 0.0))
            outcome = await self.answer()
            renewing.cancel()
        await self._teller.tell(outcome, self.envelope)
        try:
            await self._parts.inbox.told(self.task.idempotency_key, self._parts.owner)
        except DispatcherError as error:  # told once more after a restart: harmless
            _log.warning("inbox.failed", extra={**facts(self.task), "reason": error.error_code})

    async def join(self, task: TaskFrame, is_lost: Callable[[], bool]) -> None:
        """Go on under a later attempt: only the newest one's renewals count (I3)."""
        if serial_of(task) > serial_of(self.task):
            self.task = task
        await self._teller.started(self.envelope, is_lost)

    async def see_out(self) -> None:
        """Keep the claim of a run past its budget until it ends, and store how.

        Cancelled, it leaves the key taken: the handler may still be at work.
        """
        run, margin_s = self._started(), self._parts.rules.claim_margin_s
        while (outcome := await run.end_within(margin_s / 2)) is None:
            await self._hold(margin_s)
        if not run.is_cancelled:  # that is stored as cancelled
            await self._store(outcome)

    async def _renew(self, lease_s: float) -> None:
        while True:
            await self._parts.clock.sleep(lease_s / self._parts.rules.renewals)
            await self._teller.signal(RenewFrame, self.envelope)
            await self._hold(lease_s + self._parts.rules.claim_margin_s)

    async def _end_signals(self) -> None:
        """Send the last pieces, so that they come before the result, and then nothing more."""
        if self._progress is not None:
            self._progress.close()
        if self._pieces is not None:
            await self._pieces.close()

    async def _send_progress(self, fraction: float | None, note: str | None) -> None:
        await self._teller.signal(ProgressFrame, self.envelope, fraction=fraction, note=note)

    async def _send_piece(self, sequence: int, body: ResultBody) -> None:
        await self._teller.signal(PartialFrame, self.envelope, sequence=sequence, result=body)

    async def _hold(self, seconds: float) -> None:
        try:
            await self._parts.inbox.hold(self.task.idempotency_key, self._parts.owner, seconds)
        except Exception:  # noqa: BLE001 - whatever ails the inbox, the run has to be seen out
            _log.exception("inbox.failed", extra=facts(self.task))

    async def _store(self, outcome: Outcome) -> None:
        """Log and store how the run really ended, which a late one has not been told as."""
        elapsed_ms = round((self._parts.clock.monotonic() - self._began) * 1000) if self.has_begun else 0
        _log.info("task.ended", extra={**ending(self.task, outcome), "elapsed_ms": elapsed_ms})
        try:
            await self._parts.inbox.finish(
                self.task.idempotency_key,
                self._parts.owner,
                outcome.encoded,
                retryable=outcome.can_retry,
                failed=outcome.has_failed,
            )
        except Exception:  # noqa: BLE001 - the result is known here and now: telling it beats keeping it back
            _log.exception("inbox.failed", extra=facts(self.task))

    def _count(self, outcome: Outcome) -> None:
        if outcome is CANCELLED:
            return  # says nothing of the agent
        now = self._parts.clock.monotonic()
        call = FinishedCall(
            capability=self.task.capability,
            finished_at=now,
            seconds=now - self._began,
            failed=outcome.has_failed,
        )
        self._window.add(call)

    def _note_change(self) -> None:
        """Few ever wait for one."""
        if self._change is not None:
            self._change.set()
            self._change = None

    def _started(self) -> Run:
        if self._run is None:
            raise RuntimeError("the handler was not started")
        return self._run


def ending(task: TaskFrame, outcome: Outcome) -> dict[str, object]:
    """What a log line says of a task's end."""
    return {**facts(task), "status": outcome.status, "error_code": outcome.error_code}


def facts(task: TaskFrame) -> dict[str, object]:
    """What a log line says of a task."""
    return {
        "agent_id": task.agent_id,
        "request_id": task.request_id,
        "task_id": task.task_id,
        "capability": task.capability,
        "attempt": task.attempt,
    }
