"""An agent's keys for tickets, and for how long it trusts them."""

from dispatcher.clock import Clock
from dispatcher.protocol.direct import DirectKey, DirectKeys, Permit, is_valid


class HeldKeys:
    """The keys that the dispatcher told last; each telling replaces the one before.

    An agent that is told nothing more goes on with them for `keep_s` seconds of its own monotonic
    clock, and admits nobody after that.
    """

    def __init__(self, keep_s: float, clock: Clock) -> None:
        self._keep_s = keep_s
        self._clock = clock
        self._keys: dict[str, DirectKey] = {}
        self._learnt_at = 0.0

    def learn(self, keys: DirectKeys) -> None:
        """Hold exactly these from now on."""
        self._keys = {key.key_id: key for key in keys.keys}
        self._learnt_at = self._clock.monotonic()

    def forget(self) -> None:
        """Hold none."""
        self._keys = {}

    def admits(self, ticket: str, permit: Permit) -> bool:
        """Whether the ticket is one for this permit, under a key that is held and not too old."""
        is_fresh = self._clock.monotonic() - self._learnt_at < self._keep_s
        return is_fresh and is_valid(ticket, permit, self._keys)
