"""Stopping: the ids that were cancelled, and the word to a handler that it should stop."""

import asyncio
import contextlib
from collections import OrderedDict

from dispatcher.sdk.flag import Flag

MOST = 1_000
KEEP_S = 600.0


class Cancellations:
    """Remembers the last `MOST` cancelled task ids, each for `KEEP_S` seconds.

    A task may come after its cancel.
    """

    def __init__(self) -> None:
        self._at: OrderedDict[str, float] = OrderedDict()

    def add(self, task_id: str, now: float) -> None:
        """Remember; at the bound the oldest is forgotten."""
        self._at[task_id] = now
        self._at.move_to_end(task_id)
        if len(self._at) > MOST:
            self._at.popitem(last=False)

    def holds(self, task_id: str, now: float) -> bool:
        """Whether the task was cancelled lately."""
        at = self._at.get(task_id)
        return at is not None and now - at < KEEP_S


class Stop:
    """Tells one handler to stop: by a flag that it may look at, and by cancelling it where it is awaited."""

    def __init__(self, flag: Flag) -> None:
        self._flag = flag
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.has_expired = False
        """Whether the time of an awaited handler ran out before it ended."""

    @property
    def is_set(self) -> bool:
        """Whether the handler was told."""
        return self._flag.is_set()

    def listen(self, seconds: float) -> None:
        """The current task is to be cancelled: at once if the word came before it, or after its time."""
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(seconds, self._expire)
        if self._flag.is_set():
            self._cancel()

    def leave(self) -> None:
        """The handler has ended: nothing is left to cancel."""
        self._task = None
        if self._timer is not None:
            self._timer.cancel()

    def set(self) -> None:
        """Tell; from any thread."""
        self._flag.set()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # its loop has closed
                self._loop.call_soon_threadsafe(self._cancel)

    def _expire(self) -> None:
        self.has_expired = True
        self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
