"""One delivery from arrival to settlement: what it may do, its run, its answer.

The order that makes a crash harmless: claim → run → store the outcome → publish the result,
confirmed → only then acknowledge. Until there is an outcome, whatever fails gives the delivery
back. Once there is one it is kept, unsettled, and the result is published again and again: each
giving back counts towards the delivery limit, and at the limit nobody would ask the inbox again.
Prefetch bounds what is kept.
"""

import asyncio
import logging

from pydantic import ValidationError

from dispatcher.errors import DispatcherError, TooLargeError
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.link import Delivery, Settlement
from dispatcher.sdk.backoff import pauses
from dispatcher.sdk.load_window import LoadWindow
from dispatcher.sdk.outcome import Outcome, too_large
from dispatcher.sdk.runs import Parts, Runs

_log = logging.getLogger(__name__)


class Intake:
    """Handles deliveries, each in a task of its own; `handle` never raises but for cancellation."""

    def __init__(self, parts: Parts, window: LoadWindow) -> None:
        self._parts = parts
        self._runs = Runs(parts, window)
        self._in_hand = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def in_hand(self) -> int:
        """Deliveries not settled yet."""
        return self._in_hand

    def drain(self) -> None:
        """Start no handler any more; what runs is finished and told."""
        self._runs.drain()

    async def idle(self) -> None:
        """Return once no delivery is in hand. A run past its budget is not waited for."""
        await self._idle.wait()

    async def handle(self, delivery: Delivery) -> None:
        """Settle one delivery; returns when its handler has ended too, if that is later.

        Cancelled, as when the time for a drain is over, it gives the delivery back.
        """
        async with asyncio.TaskGroup() as group:
            await self._settle(delivery, group)

    async def _settle(self, delivery: Delivery, group: asyncio.TaskGroup) -> None:
        """Process one delivery and settle it exactly once: the only place that settles (I4)."""
        self._in_hand += 1
        self._idle.clear()
        settlement = Settlement.REQUEUE
        try:
            settlement = await self._settlement(delivery, group)
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

    async def _settlement(self, delivery: Delivery, group: asyncio.TaskGroup) -> Settlement:
        task = _read(delivery.body, self._parts.agent.agent_id)
        if task is None:
            return Settlement.DEAD
        outcome = await self._runs.outcome(task, group)
        if outcome is not None and await self._tell(delivery, task, outcome):
            return Settlement.ACK
        return Settlement.REQUEUE

    async def _tell(self, delivery: Delivery, task: TaskFrame, outcome: Outcome) -> bool:
        """Publish the result until it is confirmed; False when the delivery was lost meanwhile.

        A lost one comes again, here or elsewhere, and is told from the inbox.
        """
        frame = outcome.answer_to(task, self._parts.owner)
        for pause in pauses(self._parts.rules.publish, self._parts.chance):
            try:
                await self._parts.link.publish_result(frame)
            except TooLargeError:
                frame = too_large(len(frame)).answer_to(task, self._parts.owner)
            except DispatcherError as error:
                _log.warning(
                    "result.not_confirmed", extra={"task_id": task.task_id, "reason": error.error_code}
                )
            else:
                return True
            if delivery.is_lost:
                break
            await self._parts.clock.sleep(pause)
        return False


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
