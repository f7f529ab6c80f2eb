"""The collector: result frames from any channel, committed to the ledger before they are acknowledged."""

import logging
from dataclasses import dataclass

from pydantic import ValidationError

from dispatcher.dispatch.assign import Assigner
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.settle import settle
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import RequestId
from dispatcher.protocol.frames import ResultFrame
from dispatcher.protocol.link import Settlement

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Every replica runs one; any replica finishes what another began (I8)."""

    books: Bookkeeper
    assigner: Assigner

    async def on_result(self, body: bytes) -> Settlement:
        """Commit one encoded result frame.

        ACK once committed, or where its request is unknown (deleted by retention or foreign);
        REQUEUE when the ledger can't be reached; DEAD when nobody can read it.
        """
        try:
            frame = ResultFrame.model_validate_json(body)
        except ValidationError:
            logger.warning("result.unreadable", extra={"size_bytes": len(body)})
            return Settlement.DEAD
        logger.info("result.received", extra=_facts(frame))
        if frame.error_message is not None:
            logger.warning("agent.error", extra={**_facts(frame), "error_message": frame.error_message})
        try:
            change = await self.books.update(
                RequestId(frame.request_id),
                lambda state, now: settle(state, now, frame, self.assigner),
            )
        except UnavailableError:
            logger.warning("result.not_stored", extra=_facts(frame))
            return Settlement.REQUEUE
        if change is None:
            logger.warning("result.unknown_request", extra=_facts(frame))
            return Settlement.ACK
        return Settlement.ACK


def _facts(frame: ResultFrame) -> dict[str, object]:
    return {
        "request_id": frame.request_id,
        "task_id": frame.task_id,
        "attempt": frame.attempt,
        "status": str(frame.status),
        "error_code": frame.error_code,
    }
