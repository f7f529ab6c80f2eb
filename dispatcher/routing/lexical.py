"""How many telling words a text shares with each declaration: BM25 (Robertson and Zaragoza, 2009).

Words and pairs of neighbouring ones for scripts with spaces ("bank", "account", "bank account"), characters
and pairs of them for Chinese, Japanese and Korean.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.slots import Key, Slots

K1 = 1.2
"""How soon more of the same word stops to count."""
B = 0.75
"""How much long declarations are held back."""
PAIR_WORTH = 0.5
"""Of two neighbouring words, a word having 1; pairs of unspaced characters count as words do."""

_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_IN_WORDS = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))
"""Each ASCII character as it is in words, and spaces for those that are in none."""
_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|[^\W_{_UNSPACED}]+")


def terms(text: str) -> list[str]:
    """The text's terms, repeated ones included."""
    if text.isascii():
        words = text.translate(_IN_WORDS).split()
        return [*words, *map(" ".join, pairwise(words))]
    found: list[str] = []
    before = None
    for match in _RUN.finditer(text.lower()):
        run = match[0]
        if match["unspaced"]:
            found += run
            found += (run[at : at + 2] for at in range(len(run) - 1))
            before = None
        else:
            found += (run,) if before is None else (run, f"{before} {run}")
            before = run
    return found


def name_words(name: str) -> str:
    """The words of a capability's name, apart: `order.query` and `order-query` both say "order query"."""
    return " ".join(re.findall(r"[^._-]+", name))


class _Places(NamedTuple):
    """The position of each slot, and how soon more of the same word stops to count there."""

    position_of: NDArray[np.intp]
    damping: NDArray[np.float32]


class LexicalIndex:
    """Term counts of each key's declaration; what a term adds depends on all and is worked out when asked."""

    def __init__(self) -> None:
        self._slots = Slots()
        self._counts: dict[Key, Counter[str]] = {}
        self._postings: dict[str, dict[int, int]] = {}
        self._gains: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        """What a term adds to the keys at which positions, as far as somebody asked; none after a change."""
        self._places: _Places | None = None
        """None after a change."""
        self._lengths = np.zeros(16, dtype=np.float32)

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys, sorted."""
        return self._slots.keys

    def put(self, key: Key, texts: Sequence[str]) -> None:
        """Add or replace one key."""
        self.remove(key)
        slot = self._slots.put(key)
        counts = Counter(term for text in texts for term in terms(text))
        for term, count in counts.items():
            self._postings.setdefault(term, {})[slot] = count
        if slot >= len(self._lengths):
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        self._lengths[slot] = counts.total()
        self._changed()
        self._counts[key] = counts

    def remove(self, key: Key) -> None:
        """Forget one key; nothing happens where it is not there."""
        slot = self._slots.remove(key)
        if slot is None:
            return
        for term in self._counts.pop(key):
            del self._postings[term][slot]
            if not self._postings[term]:
                del self._postings[term]
        self._lengths[slot] = 0
        self._changed()

    def _changed(self) -> None:
        self._gains.clear()
        self._places = None

    def scores(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """BM25 of each text (row) with each key (column, by position); 0 where nothing is shared."""
        table = np.zeros((len(texts), len(self._slots)), dtype=np.float32)
        for row, text in zip(table, texts, strict=True):
            found = [
                self._gains.get(term) or self._gains_of(term)
                for term in dict.fromkeys(terms(text))
                if term in self._postings
            ]
            if found:
                positions, gains = zip(*found, strict=True)
                row[:] = np.bincount(np.concatenate(positions), np.concatenate(gains), len(row))
        return table

    def _gains_of(self, term: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        posting = self._postings[term]
        places = self._places = self._places or self._arrange()
        slots = np.fromiter(posting, dtype=np.intp, count=len(posting))
        # Of 64 bits, as the sum over terms wants them: else it would make them so each time.
        counts = np.fromiter(posting.values(), dtype=np.float64, count=len(posting))
        rarity = math.log1p((len(self._slots) - len(slots) + 0.5) / (len(slots) + 0.5))
        worth = rarity * (PAIR_WORTH if " " in term else 1.0) * (K1 + 1)
        gains = counts * worth / (counts + places.damping[slots])
        found = self._gains[term] = (places.position_of[slots], gains)
        return found

    def _arrange(self) -> "_Places":
        position_of = np.zeros(self._slots.size, dtype=np.intp)
        position_of[self._slots.order] = np.arange(len(self._slots))
        lengths = self._lengths[: self._slots.size]
        mean = max(float(lengths.sum()) / len(self._slots), 1.0)
        return _Places(position_of, K1 * (1 - B + B * lengths / mean))
