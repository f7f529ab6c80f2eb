"""How far the reader of a request's events was told (pure); as text it is the id of each event."""

import re
from enum import IntEnum
from typing import NamedTuple, Self

from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.errors import RequestError
from dispatcher.records import Struct, replace

_TEXT = re.compile(r"[0-9a-f]{6}-[0-3](\.[1-9]_[0-3]_(0|[1-9][0-9]{0,6}))*", re.ASCII)
_OWN_CHARACTERS = 6
"""Of the request's id; enough that no one takes the event of one request for another's."""


class Head(IntEnum):
    """What was told of the request as a whole."""

    NOTHING = 0
    ACCEPTED = 1
    PLANNED = 2
    ANSWERED = 3


class Stage(IntEnum):
    """What was told of one attempt; ENDED: of the whole task, everything."""

    NEW = 0
    DECIDED = 1
    DELIVERED = 2
    ENDED = 3


class Mark(NamedTuple):
    """How far one task was told: all attempts before `attempt`, and its partials below `sequence`."""

    attempt: int = 1
    stage: Stage = Stage.NEW
    sequence: int = 0


class Cursor(Struct, frozen=True, kw_only=True):
    """How far a request was told; `marks` are by position of the task, `own` is of the request's id."""

    own: str
    head: Head
    marks: tuple[Mark, ...]

    @classmethod
    def start(cls, state: RequestState) -> Self:
        """The cursor before the first event."""
        own = state.request.request_id[-_OWN_CHARACTERS:]
        return cls(own=own, head=Head.NOTHING, marks=(Mark(),) * len(state.tasks))

    @classmethod
    def read(cls, text: str, state: RequestState) -> Self:
        """The cursor that `str` wrote; raises RequestError `invalid_event_id` for any other text.

        That of another request is refused too.
        """
        start = cls.start(state)
        if not _TEXT.fullmatch(text):
            raise _invalid()
        own, _, rest = text.partition("-")
        head, *marks = rest.split(".")
        if own != start.own or len(marks) != len(start.marks):
            raise _invalid()
        return replace(start, head=Head(int(head)), marks=tuple(map(_mark, marks)))

    def __str__(self) -> str:
        """Visible ASCII, about ten characters for each task."""
        marks = (f".{mark.attempt}_{mark.stage:d}_{mark.sequence}" for mark in self.marks)
        return f"{self.own}-{self.head:d}{''.join(marks)}"

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing left to tell, ever."""
        return self.head is Head.ANSWERED

    def with_mark(self, position: int, mark: Mark) -> Self:
        """The cursor with one task told further."""
        return replace(self, marks=(*self.marks[:position], mark, *self.marks[position + 1 :]))


def _mark(text: str) -> Mark:
    attempt, stage, sequence = map(int, text.split("_"))
    return Mark(attempt, Stage(stage), sequence)


def _invalid() -> RequestError:
    return RequestError("Last-Event-ID is not the id of an event of this request.", code="invalid_event_id")
