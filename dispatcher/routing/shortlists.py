"""Shortlists of texts that were decided lately, so that deciding again looks at what changes only."""

from dispatcher.routing.recent_texts import LIMIT, RecentTexts
from dispatcher.routing.shortlist import Shortlist, Shortlister, Wish


class Shortlists:
    """Remembers one shortlist for each text; it is made anew when a group in it is another one now.

    Belongs to one calibration: another one needs another object.
    """

    def __init__(self, shortlister: Shortlister, limit: int = LIMIT) -> None:
        self._shortlister = shortlister
        self._recent = RecentTexts(_size, limit)

    def find(self, wish: Wish) -> Shortlist:
        """The shortlist of one wish, as the directory is now."""
        if wish.ranking is None:
            return self._shortlister.make(wish)
        text = wish.ranking.text
        known = self._recent.find(text)
        if known is not None and known.holds(wish, self._shortlister.groups):
            return known
        made = self._shortlister.make(wish)
        self._recent.keep(text, made)
        return made


def _size(made: Shortlist) -> int:
    # The ranking as well: it lives as long as the shortlist, whether it is remembered by itself or not.
    ranking = made.wish.ranking.size if made.wish.ranking else 0
    return ranking + len(made.group) + len(made.neighbours) + len(made.groups)
