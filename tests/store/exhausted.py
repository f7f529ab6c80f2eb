"""A system that has no threads left for a while."""

from threading import Thread
from typing import Any


class _Unstartable(Thread):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


class Exhausted:
    """Makes threads, of which the first `times` can't be started."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self, **options: Any) -> Thread:
        self._left -= 1
        return _Unstartable(**options) if self._left >= 0 else Thread(**options)
