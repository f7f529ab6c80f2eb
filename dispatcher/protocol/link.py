"""The seam between an agent's runtime and whatever carries its frames.

The SDK drives a `Link`; the in-process channel and RabbitMQ each provide one. Frames cross
it as encoded bytes in both, so that the local mode exercises the same contract as the wire.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Protocol

from dispatcher.identifiers import AgentId


class Settlement(Enum):
    """What becomes of one consumed message; every message gets exactly one (I4)."""

    ACK = "ack"
    """Done with: the message is gone."""
    REQUEUE = "requeue"
    """Given back (`basic.reject(requeue=True)`): delivered again, counts towards the delivery limit."""
    DEAD = "dead"
    """Moved to the dead letters: nobody can read it or it failed for good."""


class Delivery(Protocol):
    """One consumed frame. Settling a second time, or after the connection was lost, does nothing."""

    @property
    def body(self) -> bytes:
        """The encoded frame."""
        ...

    @property
    def since(self) -> float:
        """From when its budget runs, in monotonic seconds: as early as the transport knows of it."""
        ...

    @property
    def is_lost(self) -> bool:
        """Whether its connection ended: settling does nothing any more, it is delivered again."""
        ...

    async def settle(self, settlement: Settlement) -> None:
        """Decide the message's fate; never raises for a connection that is gone."""
        ...


class Link(Protocol):
    """An agent's way to its dispatcher. All methods may be called concurrently."""

    async def call(self, frame: bytes) -> bytes:
        """Send a register, drain, leave or heartbeat frame and return the encoded reply frame.

        Raises `OutcomeUnknownError` when no reply came in time; calling again is safe.
        """
        ...

    async def beat(self, frame: bytes) -> None:
        """Send a heartbeat to every dispatcher replica; lost ones are not reported."""
        ...

    async def publish_result(self, frame: bytes) -> None:
        """Return once the result frame is stored by the transport; raises `DeliveryError` otherwise."""
        ...

    async def publish_signal(self, frame: bytes) -> None:
        """Return once a signal frame is stored by the transport; raises `DeliveryError` otherwise.

        A transport may drop signals that nobody took for a minute.
        """
        ...

    def controls(self, agent_id: AgentId) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Encoded frames for every instance of the agent (`cancel`) that arrive inside the block.

        What is sent while the connection is down is lost.
        """
        ...

    def deliveries(
        self, agent_id: AgentId, prefetch: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery]]:
        """Consume the agent's task queue with at most `prefetch` unsettled deliveries.

        Leaving the context stops consumption; what is unsettled then is delivered again elsewhere.
        """
        ...
