"""How many messages may be on their way in at once."""

from dispatcher.errors import OverloadedError


class Door:
    """At most `limit` messages are being read, understood and stored; the next is refused unread.

    What is refused costs next to nothing, so that those inside are done in bounded time whatever
    comes. Clients that wait for an answer are past the door.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inside = 0

    def entering(self) -> "Door":
        """The way in and out; entering raises OverloadedError (`too_many_arriving`) where it is full."""
        return self

    def __enter__(self) -> None:
        if self._inside >= self._limit:
            raise OverloadedError("Too many messages arrive at once.", code="too_many_arriving")
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
