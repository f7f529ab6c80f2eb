"""From one thread into another's event loop, with one wake-up for all that crosses meanwhile."""

import asyncio
from collections import deque
from collections.abc import Callable


class Crossing:
    """Calls from any thread, made on one loop in the order given.

    Waking a loop costs a system call and, often, the interpreter lock twice; under load most calls
    find it woken already.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._is_woken = False

    def call(self, callback: Callable[[], None]) -> None:
        """Have it called soon; it must not raise. Raises RuntimeError where the loop has closed."""
        self._calls.append(callback)
        if not self._is_woken:
            # Set before the loop can clear it: whoever finds it set has its call seen by `_run`.
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:
                self._is_woken = False
                raise

    def _run(self) -> None:
        self._is_woken = False
        while self._calls:
            self._calls.popleft()()
