"""Ranks many rows in batches, as they come."""

from collections.abc import AsyncIterator, Callable, Sequence

from dispatcher.routing.router import Ranking, Router
from dispatcher.tuning.basis.rows import RequestRow

BATCH = 64
"""Texts that are ranked at a time."""


def silent(done: int) -> None:
    """Tell nobody."""
    del done


async def rank_all(
    router: Router, rows: Sequence[RequestRow], tell: Callable[[int], None] = silent
) -> AsyncIterator[tuple[RequestRow, Ranking]]:
    """Each row with its ranking, in order; `tell` hears how many are done. Raises as an encoder does."""
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        rankings = await router.rank([row.text for row in batch])
        for pair in zip(batch, rankings, strict=True):
            yield pair
        tell(start + len(batch))
