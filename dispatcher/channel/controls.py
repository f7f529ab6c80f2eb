"""Control frames inside one process: each goes to every instance that listens for the agent."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from dispatcher.identifiers import AgentId

LIMIT = 1_000
"""Frames kept for one listener; the next one is lost to it, as control frames may be."""


class Controls:
    """Who listens for which agent. Nothing is kept for those who listen later."""

    def __init__(self) -> None:
        self._listeners: defaultdict[AgentId, set[asyncio.Queue[bytes]]] = defaultdict(set)

    def tell(self, agent_id: AgentId, frame: bytes) -> None:
        """Hand the frame to everyone who listens for the agent now."""
        for queue in self._listeners.get(agent_id, ()):
            if not queue.full():
                queue.put_nowait(frame)

    @contextmanager
    def heard(self, agent_id: AgentId) -> Iterator[AsyncIterator[bytes]]:
        """The frames that are told inside the block."""
        queue: asyncio.Queue[bytes] = asyncio.Queue(LIMIT)
        self._listeners[agent_id].add(queue)
        try:
            yield _each(queue)
        finally:
            self._listeners[agent_id].discard(queue)
            if not self._listeners[agent_id]:
                del self._listeners[agent_id]


async def _each(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    while True:
        yield await queue.get()
