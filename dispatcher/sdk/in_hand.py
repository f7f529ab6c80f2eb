"""How much work is in hand, for a drain that waits for it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class InHand:
    """Counts deliveries that are not settled and long runs that are not told."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def count(self) -> int:
        """Right now."""
        return self._count

    async def idle(self) -> None:
        """Return once nothing is in hand."""
        await self._idle.wait()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count one until the block ends."""
        self._count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._count -= 1
            if self._count == 0:
                self._idle.set()
