"""How much work is in hand, for a drain that waits for it."""

import asyncio
from types import TracebackType


class InHand:
    """Counts deliveries that are not settled and long runs that are not told: one for each `with` block."""

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
        while self._count:  # a long run is in hand anew just after its delivery was settled
            await self._idle.wait()

    def __enter__(self) -> None:
        self._count += 1
        self._idle.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._count -= 1
        if self._count == 0:
            self._idle.set()
