"""The sweep: ends what is past its time, whichever replica accepted it."""

import logging
from dataclasses import dataclass

from dispatcher.dispatch.assign import Assigner
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.expire import expire

logger = logging.getLogger(__name__)
BATCH = 200
"""Overdue requests handled per look; the rest waits for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One look at a time; several replicas may look at once, row locks keep their changes apart."""

    books: Bookkeeper
    assigner: Assigner

    async def look(self) -> int:
        """End overdue attempts, tasks and requests; the number of requests touched."""
        overdue = await self.books.ledger.overdue(BATCH)
        for request_id in overdue:
            await self.books.update(request_id, lambda state, now: expire(state, now, self.assigner))
            logger.info("request.expired", extra={"request_id": request_id})
        return len(overdue)
