"""Time as a part that is passed in.

Ages and waits inside a process use the monotonic clock; what is stored uses the
database's clock; the wire carries remaining budgets (invariant I10).
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock that can also be waited on."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`; zero or less only yields to other tasks."""
        ...


class Calendar(Protocol):
    """What day and hour it is, for opening hours and for words like "yesterday"; never for ages."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's own clocks, as `Clock` and as `Calendar`."""

    monotonic = staticmethod(time.monotonic)
    """Seconds since an arbitrary start; a request asks some twenty times."""

    def now(self) -> datetime:
        """The machine's wall clock."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(max(seconds, 0.0))
