"""What a writer of groups does: one round trip, one transaction, nothing read beforehand."""

from dataclasses import dataclass
from typing import Protocol

from dispatcher.identifiers import RequestId
from dispatcher.store.changes import ChangeSet

CLAIM_MARGIN_MS = 1_000
"""How long before the end of a claim nothing is written any more as if nobody else could take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Requests whose rows are committed now; those of the others were left out, all of them.

    `is_repeated` tells that the connection broke and the group was sent again: what is missing here
    may have been committed by the first sending.
    """

    request_ids: frozenset[RequestId]
    now_ms: int
    is_repeated: bool = False


class DirectWriter(Protocol):
    """Has a connection of its own and uses it for one group at a time.

    Raises as `Database.writing` does; nothing of the group is stored then, or its outcome is unknown.
    """

    async def insert(self, changes: ChangeSet) -> Written:
        """Store new requests whose id and key are free, with everything below them."""
        ...

    async def update(self, changes: ChangeSet) -> Written:
        """Store changes of requests that are still what the changes were made from: see `Guard`.

        Raises LostError where its connection broke: never sent again, for the server that answers
        then may lack the commits that the changes were made from.
        """
        ...

    async def read_now(self) -> int:
        """The database's time in milliseconds."""
        ...

    async def close(self) -> None:
        """Give up the connection."""
        ...
