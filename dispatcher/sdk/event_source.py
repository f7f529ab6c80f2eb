"""Reads server-sent events (HTML Living Standard §9.2.6)."""

import codecs
import re
from collections.abc import Iterator

from dispatcher.errors import UnavailableError

MAX_EVENT = 16 * 1024 * 1024
"""Characters of one event; more are not kept."""
_LINE_END = re.compile(r"\r\n|\n|\r(?=.)", re.DOTALL)
"""A carriage return at the end may be half of a pair: it waits for the next chunk."""


class EventParser:
    """Takes the body in chunks cut anywhere; gives `(event, id, data)` for each complete event.

    The id is the last one that was sent, as the standard has it. Comments and `retry` are skipped.
    """

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max_event = max_event
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._rest = ""
        self._id = ""
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str, str]]:
        """The events that this chunk completes; raises `UnavailableError` for one that is too long."""
        *lines, self._rest = _LINE_END.split(self._rest + self._decoder.decode(chunk))
        if self._size + len(self._rest) > self._max_event:
            raise UnavailableError("an event is too long")
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                yield self._name or "message", self._id, "\n".join(self._data)
                self._begin()
            else:
                self._begin()

    def _begin(self) -> None:
        self._name, self._data, self._size = "", [], 0

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
                self._size += len(value)
            case "event":
                self._name = value
            case "id" if "\x00" not in value:
                self._id = value
