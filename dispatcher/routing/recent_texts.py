"""What was made of texts that were asked for lately."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")

LIMIT = 100_000
"""Agents in everything that is kept together; some 100 to 150 bytes each."""
LONGEST = 256
"""Characters; longer texts hardly come twice, and nothing is kept of them."""


class RecentTexts(Generic[Made]):
    """Keeps one thing for each text; `size_of` says how many agents are in it.

    At most `limit` agents are in all of them together, and no text is longer than `LONGEST`; the text
    asked for longest ago is dropped first.
    """

    def __init__(self, size_of: Callable[[Made], int], limit: int = LIMIT) -> None:
        self._size_of = size_of
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[str, Made] = OrderedDict()

    def find(self, text: str) -> Made | None:
        """What is kept for the text, if anything is."""
        found = self._kept.get(text)
        if found is not None:
            self._kept.move_to_end(text)
        return found

    def keep(self, text: str, made: Made) -> None:
        """Keep this for the text from now on, in place of what was kept before."""
        if len(text) > LONGEST:
            return
        before = self._kept.pop(text, None)
        if before is not None:
            self._size -= self._size_of(before)
        self._kept[text] = made
        self._size += self._size_of(made)
        while self._size > self._limit:
            _, dropped = self._kept.popitem(last=False)
            self._size -= self._size_of(dropped)
