"""The collector: result frames from any channel, committed to the ledger before they are acknowledged."""

import logging
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter, ValidationError

from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.ledger import Decide
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.dispatch.lifecycle.signal import note
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import RequestId
from dispatcher.protocol.frames import PartialFrame, ReportFrame, ResultFrame, SignalFrame
from dispatcher.protocol.link import Settlement

logger = logging.getLogger(__name__)
_REPORT: TypeAdapter[ResultFrame | SignalFrame] = TypeAdapter(ReportFrame)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Every replica runs one; any replica finishes what another began (I8)."""

    books: Bookkeeper
    assigner: Assigner

    async def on_result(self, body: bytes) -> Settlement:
        """Commit one encoded result or signal frame.

        ACK once committed, or where its request is unknown (deleted by retention or foreign);
        REQUEUE when the ledger can't be reached; DEAD when nobody can read it.
        """
        try:
            frame: ResultFrame | SignalFrame = _REPORT.validate_json(body)
        except ValidationError:
            logger.warning("result.unreadable", extra={"size_bytes": len(body)})
            return Settlement.DEAD
        if isinstance(frame, ResultFrame):
            _log_result(frame)
        try:
            change = await self.books.update(RequestId(frame.request_id), self._rule(frame))
        except UnavailableError:
            logger.warning("result.not_stored", extra=_facts(frame))
            return Settlement.REQUEUE
        if change is None:
            logger.warning("result.unknown_request", extra=_facts(frame))
        elif isinstance(frame, PartialFrame):
            await self.books.announce(change)
        return Settlement.ACK

    def _rule(self, frame: ResultFrame | SignalFrame) -> Decide:
        if isinstance(frame, ResultFrame):
            return partial(settle, frame=frame, assigner=self.assigner)
        return partial(note, frame=frame)


def _log_result(frame: ResultFrame) -> None:
    facts = {**_facts(frame), "status": str(frame.status), "error_code": frame.error_code}
    logger.info("result.received", extra=facts)
    if frame.error_message is not None:
        logger.warning("agent.error", extra={**facts, "error_message": frame.error_message})


def _facts(frame: ResultFrame | SignalFrame) -> dict[str, object]:
    return {
        "request_id": frame.request_id,
        "task_id": frame.task_id,
        "attempt": frame.attempt,
        "type": frame.type,
    }
