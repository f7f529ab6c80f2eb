"""Idempotency keys that came to this replica lately."""

from collections import OrderedDict

from dispatcher.identifiers import CallerId

LIMIT = 8192


class SeenKeys:
    """At most `limit` keys, the oldest forgotten first.

    Only a hint: a key that is not here may be in the ledger, which has the last word when a
    request is accepted. What it saves is a look into the ledger for each new key, and planning
    for each replay of a known one.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._keys: OrderedDict[tuple[CallerId, str], None] = OrderedDict()

    def add(self, caller: CallerId, idempotency_key: str) -> bool:
        """Note a key; whether it was here before."""
        name = (caller, idempotency_key)
        if name in self._keys:
            self._keys.move_to_end(name)
            return True
        self._keys[name] = None
        if len(self._keys) > self._limit:
            self._keys.popitem(last=False)
        return False
