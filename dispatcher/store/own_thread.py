"""A thread that runs one function after another for an event loop.

An executor's pool does the same through two futures, a lock and a semaphore; a lone write of SQLite
pays for them twice a request, as much as for one of its statements.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from dispatcher.errors import UnavailableError

Result = TypeVar("Result")
Visit = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class OwnThread:
    """Starts with its first visit. Functions run in the order in which they came."""

    def __init__(self, name: str, make: Callable[..., Thread] = Thread) -> None:
        self._name = name
        self._make = make
        self._visits: SimpleQueue[Visit | None] = SimpleQueue()
        self._is_running = False

    async def run(self, function: Callable[[], Result]) -> Result:
        """What the function returns or raises in the thread; one that waits when cancelled never runs."""
        return await self.start(function)

    def start(self, function: Callable[[], Result]) -> "asyncio.Future[Result]":
        """The same as a future; cancelled while the function runs, it tells nothing of its end.

        Raises UnavailableError where the system has no thread to give; the next visit tries again.
        """
        if not self._is_running:
            self._begin()
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Result] = loop.create_future()
        self._visits.put((function, outcome, loop))
        return outcome

    def end(self) -> None:
        """Let the thread end after what it was given."""
        if self._is_running:
            self._is_running = False
            self._visits.put(None)

    def _begin(self) -> None:
        try:
            self._make(target=self._serve, name=self._name, daemon=True).start()
        except RuntimeError as error:
            raise UnavailableError("no thread can be started") from error
        self._is_running = True

    def _serve(self) -> None:
        while (visit := self._visits.get()) is not None:
            function, outcome, loop = visit
            if outcome.cancelled():
                continue
            result, error = None, None
            try:
                result = function()
            except BaseException as raised:  # noqa: BLE001  (whoever waits gets it, as from any call)
                error = raised
            # A loop that is closed has nobody left to tell; it may be closed at any moment.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell, outcome, result, error)


def _tell(outcome: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(error)
