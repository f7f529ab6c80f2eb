"""Log lines of one turn of an event loop in one write; standard library only, for the SDK uses it too."""

import asyncio
import logging
from contextlib import nullcontext
from typing import TextIO


class TurnHandler(logging.StreamHandler[TextIO]):
    """Writes all lines of one turn of an event loop at once; those that warn, or come outside, at once.

    Six lines a request are six system calls otherwise. A process that is killed loses the lines of a
    turn whose work it did not finish either. At most `MOST_LINES` wait.
    """

    MOST_LINES = 256

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._due_in: asyncio.AbstractEventLoop | None = None

    def handle(self, record: logging.LogRecord) -> bool:
        """See `logging.Handler`, whose way to the filters and round the lock costs more than `emit`."""
        if self.filters:
            return super().handle(record)
        with self.lock or nullcontext():
            self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        try:
            self._lines.append(self.format(record))
            if record.levelno >= logging.WARNING or len(self._lines) >= self.MOST_LINES:
                self.flush()
            else:
                self._flush_after_turn()
        except Exception:  # noqa: BLE001 - as the standard library's handlers do
            self.handleError(record)

    def flush(self) -> None:
        """Write what waits, now; from any thread."""
        with self.lock or nullcontext():
            lines, self._lines, self._due_in = self._lines, [], None
            if lines:
                self.stream.write(self.terminator.join([*lines, ""]))
                self.stream.flush()

    def _flush_after_turn(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        if loop is not self._due_in:
            self._due_in = loop
            loop.call_soon(self.flush)
