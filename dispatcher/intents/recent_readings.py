"""What was read in texts that came lately: many messages come again word for word."""

from collections.abc import Callable
from functools import lru_cache
from typing import Concatenate, Generic, ParamSpec, TypeVar

LIMIT = 2_048
"""Readings kept; some 250 bytes for each entity or clause in them: 2 MB in all, 30 MB at the very most."""
LONGEST = 256
"""Characters; longer texts hardly come twice and are read anew each time."""

Rest = ParamSpec("Rest")
Reading = TypeVar("Reading")


class RecentReadings(Generic[Rest, Reading]):
    """Asks `read` and remembers its answers, which must follow from the arguments alone.

    Nothing has to be forgotten then, the one used longest ago is dropped where there are too many.
    """

    def __init__(self, read: Callable[Concatenate[str, Rest], Reading], limit: int = LIMIT) -> None:
        self._read = read
        self._recent = lru_cache(maxsize=limit)(read)

    def __call__(self, text: str, *rest: Rest.args, **named: Rest.kwargs) -> Reading:
        """What `read` answers."""
        read = self._recent if len(text) <= LONGEST else self._read
        return read(text, *rest, **named)
