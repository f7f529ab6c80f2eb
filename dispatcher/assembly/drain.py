"""The time that a shutdown has, shared by everything that has to end."""

from dataclasses import dataclass

from dispatcher.clock import Clock


@dataclass(slots=True, kw_only=True)
class Drain:
    """`seconds` from the moment the shutdown begins; what ends early leaves its time to the next."""

    seconds: float
    clock: Clock
    _until: float | None = None

    @property
    def serving_s(self) -> float:
        """The most that open HTTP connections take of it: bodies that are on their way."""
        return 0.25 * self.seconds

    @property
    def handlers_s(self) -> float:
        """The most that handlers in this process take of it."""
        return 0.65 * self.seconds

    def begin(self) -> None:
        """The shutdown begins; later calls change nothing."""
        if self._until is None:
            self._until = self.clock.monotonic() + self.seconds

    def left_s(self) -> float:
        """What may still be waited; a twentieth is kept for closing connections and files."""
        until = self.clock.monotonic() + self.seconds if self._until is None else self._until
        return max(0.0, until - self.clock.monotonic() - 0.05 * self.seconds)
