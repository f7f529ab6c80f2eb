"""One delivery from arrival to settlement: what it may do, its run, its answer.

The order that makes a crash harmless: claim → run → store the outcome → publish the result,
confirmed → only then acknowledge. Until there is an outcome, whatever fails gives the delivery
back. Once there is one it is kept, unsettled, and the result is published again and again: each
giving back counts towards the delivery limit, and at the limit nobody would ask the inbox again.
Prefetch bounds what is kept.

A long task (`lease_ms`) would hold its delivery longer than a broker allows: claim → `started`,
confirmed → acknowledge → run and renew the lease → store → publish until confirmed. The inbox keeps
what a restart needs to tell its end (`leftovers`).
"""

import asyncio
import logging

from pydantic import ValidationError

from dispatcher.errors import DispatcherError
from dispatcher.protocol.frames import CancelFrame, TaskFrame
from dispatcher.protocol.link import Delivery, Settlement
from dispatcher.sdk.envelope import envelope_of
from dispatcher.sdk.in_hand import InHand
from dispatcher.sdk.load_window import LoadWindow
from dispatcher.sdk.parts import Parts
from dispatcher.sdk.runs import LEASE_UNCONFIRMED, Arrival, Runs
from dispatcher.sdk.telling import Teller

_log = logging.getLogger(__name__)


class Intake:
    """Handles deliveries, each in a task of its own; `handle` never raises but for cancellation."""

    def __init__(self, parts: Parts, window: LoadWindow) -> None:
        self._parts = parts
        self._teller = Teller(parts)
        self._in_hand = InHand()
        self._runs = Runs(parts, self._teller, window, self._in_hand)

    @property
    def in_hand(self) -> int:
        """Deliveries not settled yet, and long runs not told yet."""
        return self._in_hand.count

    def drain(self) -> None:
        """Start no handler any more; what runs is finished and told."""
        self._runs.drain()

    async def idle(self) -> None:
        """Return once nothing is in hand. A run past its budget is not waited for."""
        await self._in_hand.idle()

    def cancel(self, frame: bytes) -> None:
        """Stop the task that an encoded `cancel` frame names, or never start it; anything else is ignored."""
        try:
            cancel = CancelFrame.model_validate_json(frame)
        except ValidationError as error:
            _log.warning("control.unreadable", extra={"errors": error.error_count(), "bytes": len(frame)})
            return
        if cancel.agent_id == self._parts.agent.agent_id:
            _log.info("task.cancelled", extra={"task_id": cancel.task_id, "reason": cancel.reason})
            self._runs.cancel(cancel.task_id)

    async def handle(self, delivery: Delivery, since: float | None = None) -> None:
        """Settle one delivery; returns when its handler has ended too, if that is later.

        `since` is the monotonic time from which its budget runs, now by default. Cancelled, as when
        the time for a drain is over, it gives the delivery back.
        """
        begun = self._parts.clock.monotonic() if since is None else since
        async with asyncio.TaskGroup() as group:
            await self._settle(delivery, begun, group)

    async def _settle(self, delivery: Delivery, since: float, group: asyncio.TaskGroup) -> None:
        """Process one delivery and settle it exactly once: the only place that settles (I4)."""
        settlement = Settlement.REQUEUE
        with self._in_hand:
            try:
                task = _read(delivery.body, self._parts.agent.agent_id)
                if task is None:
                    settlement = Settlement.DEAD
                else:
                    settlement = await self._persistently(task, delivery, since, group)
            finally:
                await delivery.settle(settlement)

    async def _persistently(
        self, task: TaskFrame, delivery: Delivery, since: float, group: asyncio.TaskGroup
    ) -> Settlement:
        """Try again here what fails, an inbox that can't be reached say, while the task's budget lasts.

        Each giving back counts towards the delivery limit, and at the limit a task is taken for poison.
        Without a lease it belongs to others, and is given back at once.
        """
        until = since + task.budget_ms / 1000
        while True:
            try:
                return await self._settlement(task, delivery, since, group)
            except DispatcherError as error:
                _log.warning("task.not_begun", extra={"task_id": task.task_id, "reason": error.error_code})
                if error.error_code == LEASE_UNCONFIRMED:
                    return Settlement.REQUEUE
            except Exception:  # noqa: BLE001 - one delivery must not stop the others
                _log.exception("task.not_begun", extra={"task_id": task.task_id, "reason": "internal_error"})
            await self._parts.clock.sleep(self._parts.rules.pause_s)
            if delivery.is_lost or self._parts.clock.monotonic() >= until:
                return Settlement.REQUEUE

    async def _settlement(
        self, task: TaskFrame, delivery: Delivery, since: float, group: asyncio.TaskGroup
    ) -> Settlement:
        def is_lost() -> bool:
            return delivery.is_lost

        answer = await self._runs.answer(Arrival(task=task, since=since, is_lost=is_lost), group)
        if isinstance(answer, Settlement):
            return answer
        is_told = await self._teller.tell(answer, envelope_of(task), is_lost)
        return Settlement.ACK if is_told else Settlement.REQUEUE


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
