"""What an agent tells the dispatcher of its attempts: results for certain, signals as well as it can."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

from dispatcher.backoff import pauses
from dispatcher.errors import DispatcherError, TooLargeError
from dispatcher.protocol.frames import AttemptSignal, StartedFrame
from dispatcher.sdk.envelope import Envelope
from dispatcher.sdk.outcome import Outcome, too_large
from dispatcher.sdk.parts import Parts

_log = logging.getLogger(__name__)


def never() -> bool:
    """For what depends on no delivery."""
    return False


class Teller:
    """Publishes frames under an attempt's token."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def tell(self, outcome: Outcome, envelope: Envelope, is_lost: Callable[[], bool] = never) -> bool:
        """Publish the result until it is confirmed; False when the delivery was lost meanwhile.

        A lost one comes again, here or elsewhere, and is told from the inbox. So does one that did not
        run here where the lease may be lost: it may have run at a successor.
        """
        frame = outcome.answer_to(envelope, self._parts.owner)
        between = self._pauses()
        while not (outcome.has_not_run and not self._parts.fence.is_open):
            try:
                await self._parts.link.publish_result(frame)
            except TooLargeError:
                frame = too_large(len(frame)).answer_to(envelope, self._parts.owner)
            except DispatcherError as error:
                _log.warning(
                    "result.not_confirmed", extra={"task_id": envelope.task_id, "reason": error.error_code}
                )
            else:
                return True
            if is_lost():
                break
            await self._parts.clock.sleep(next(between))
        return False

    async def started(self, envelope: Envelope, is_lost: Callable[[], bool]) -> None:
        """Publish `started` until it is confirmed, or the delivery was lost: then it comes again."""
        for pause in self._pauses():
            if await self.signal(StartedFrame, envelope) or is_lost():
                return
            await self._parts.clock.sleep(pause)

    async def signal(self, kind: type[AttemptSignal], envelope: Envelope, **fields: Any) -> bool:  # noqa: ANN401 - the frame's own
        """Publish one signal; whether it was confirmed. A lost one is not published again."""
        frame = kind(**envelope.fields(), instance_id=self._parts.owner, **fields)
        try:
            await self._parts.link.publish_signal(frame.model_dump_json().encode())
        except DispatcherError as error:
            facts = {"task_id": envelope.task_id, "frame": kind.__name__, "reason": error.error_code}
            _log.info("signal.not_confirmed", extra=facts)
            return False
        return True

    def _pauses(self) -> Iterator[float]:
        return pauses(self._parts.rules.publish, self._parts.chance)
