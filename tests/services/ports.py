"""Free loopback ports for services that must be told their port before they start."""

import random
import socket
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"
_RANGE = range(10_000, 30_000)
"""Below the usual range of outgoing connections, so that a stopped service finds its port free again."""


def free_ports(count: int) -> tuple[int, ...]:
    """`count` different ports that nothing listens on at the moment of the call."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.SystemRandom().sample(_RANGE, k=len(_RANGE)):
            if len(found) == count:
                return tuple(found)
            listener = held.enter_context(socket.socket())
            try:
                listener.bind((LOOPBACK, port))
            except OSError:
                continue
            found.append(port)
    message = f"no {count} free ports in {_RANGE}"
    raise RuntimeError(message)
