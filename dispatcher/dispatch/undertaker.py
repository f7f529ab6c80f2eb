"""Takes what the transport gave up: for known tasks the ledger decides, the rest is kept for operators."""

import logging
from dataclasses import dataclass
from functools import partial

from pydantic import ValidationError

from dispatcher.channel.channel import Dead
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.dead_letter import dead_lettered
from dispatcher.dispatch.lifecycle.request import MAX_DEAD_BODY, DeadFrame
from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.identifiers import RequestId, new_id
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.link import Settlement

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undertaker:
    """Every replica runs one."""

    books: Bookkeeper
    assigner: Assigner

    async def on_dead(self, dead: Dead) -> Settlement:
        """Settle one dead frame: ACK once it is in the ledger, REQUEUE while that can't be reached.

        One whose task can't be changed, through a fault of ours, is kept as a frame.
        """
        logger.warning("frame.dead", extra={"source": dead.source, "reason": str(dead.reason)})
        try:
            if not await self._is_settled(dead):
                await self.books.ledger.bury(_dead_frame(dead))
        except UnavailableError:
            return Settlement.REQUEUE
        return Settlement.ACK

    async def _is_settled(self, dead: Dead) -> bool:
        try:
            return await self._is_known_task(dead)
        except UnavailableError:
            raise
        except DispatcherError:
            logger.exception("frame.not_settled", extra={"source": dead.source})
            return False

    async def _is_known_task(self, dead: Dead) -> bool:
        try:
            frame = TaskFrame.model_validate_json(dead.body)
        except ValidationError:
            return False
        rule = partial(dead_lettered, frame=frame, reason=dead.reason, assigner=self.assigner)
        return await self.books.update(RequestId(frame.request_id), rule) is not None


def _dead_frame(dead: Dead) -> DeadFrame:
    return DeadFrame(
        dead_id=new_id(),
        source=dead.source,
        reason=str(dead.reason),
        size_bytes=len(dead.body),
        body=dead.body.decode(errors="replace")[:MAX_DEAD_BODY],
    )
