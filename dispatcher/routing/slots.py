"""Keys and where they are kept: sorted for the reader, in stable places for arrays."""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dispatcher.identifiers import AgentId, Capability


class Key(NamedTuple):
    """What routing scores: one agent's declaration of one capability. Sorts by capability first."""

    capability: Capability
    agent_id: AgentId


class Slots:
    """Gives every key a small number that stays its own until it is removed, then is given again."""

    def __init__(self) -> None:
        self._slot_of: dict[Key, int] = {}
        self._sorted: list[Key] = []
        self._free: list[int] = []
        self._order: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self._sorted)

    def __contains__(self, key: Key) -> bool:
        return key in self._slot_of

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys, sorted; a key's place in it is its position."""
        return tuple(self._sorted)

    @property
    def order(self) -> NDArray[np.intp]:
        """The slot of each position."""
        if self._order is None:
            self._order = np.array([self._slot_of[key] for key in self._sorted], dtype=np.intp)
        return self._order

    @property
    def size(self) -> int:
        """One more than the highest slot ever given."""
        return len(self._sorted) + len(self._free)

    def put(self, key: Key) -> int:
        """The key's slot, its own one where it has one."""
        if key not in self._slot_of:
            self._slot_of[key] = self._free.pop() if self._free else len(self._sorted)
            self._sorted.insert(bisect_left(self._sorted, key), key)
            self._order = None
        return self._slot_of[key]

    def remove(self, key: Key) -> int | None:
        """The slot that the key had; None where it was not there."""
        slot = self._slot_of.pop(key, None)
        if slot is not None:
            del self._sorted[bisect_left(self._sorted, key)]
            self._free.append(slot)
            self._order = None
        return slot
