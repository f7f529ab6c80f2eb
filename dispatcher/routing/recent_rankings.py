"""Rankings of texts that were asked for lately."""

from collections import OrderedDict
from collections.abc import Sequence

from dispatcher.routing.ranking import Ranking

LIMIT = 100_000
"""Agents in all kept rankings together; some 100 bytes each."""


class RecentRankings:
    """A text's ranking depends on nothing but the registry and its calibration: `clear` when they change.

    At most `limit` agents are in the kept rankings together; the text asked for longest ago is
    dropped first.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._rankings: OrderedDict[str, Ranking] = OrderedDict()

    def find(self, text: str) -> Ranking | None:
        """The text's ranking, if it is kept."""
        found = self._rankings.get(text)
        if found is not None:
            self._rankings.move_to_end(text)
        return found

    def keep(self, rankings: Sequence[Ranking]) -> None:
        """Remember rankings that were just made."""
        for ranking in rankings:
            if ranking.text not in self._rankings:
                self._rankings[ranking.text] = ranking
                self._size += _size(ranking)
        while self._size > self._limit:
            _, dropped = self._rankings.popitem(last=False)
            self._size -= _size(dropped)

    def clear(self) -> None:
        """Forget all."""
        self._rankings.clear()
        self._size = 0


def _size(ranking: Ranking) -> int:
    return 1 + sum(len(entry.agent_cosines) for entry in ranking.capabilities)
