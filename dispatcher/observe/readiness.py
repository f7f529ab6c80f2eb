"""Whether a part that we depend on answered the last time it was asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.errors import UnavailableError


class Watched:
    """Remembers the outcome of the latest use of a part."""

    def __init__(self) -> None:
        self.problem: str | None = None
        """Why it did not answer, in one sentence; None when it did."""

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Note how the body ends; UnavailableError is passed on."""
        try:
            yield
        except UnavailableError as error:
            self.problem = error.message
            raise
        self.problem = None
