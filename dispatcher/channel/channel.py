"""The dispatcher's side of delivery: one protocol, several ways to reach agents.

Contract, tested for every implementation in tests/conformance: a task whose `send` returned
reaches an instance of the agent at least once within its budget, and never after it: what waited
longer goes to the dead letters. A result is handed to `on_result` until that returns ACK or DEAD,
or failed too often; frames that can't be read never block those behind them.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.link import Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """Where a channel hands over what arrives. None of these is meant to raise."""

    on_result: Callable[[bytes], Awaitable[Settlement]]
    """An encoded result frame; the settlement it returns is carried out.

    If it raises all the same the frame is offered again, a bounded number of times.
    """
    on_registry: Callable[[bytes], Awaitable[bytes]]
    """An encoded register, drain or leave frame; returns the encoded reply frame."""
    on_heartbeat: Callable[[bytes], None]
    """An encoded heartbeat; every replica sees every heartbeat."""
    on_wake: Callable[[RequestId], None]
    """Another replica finished something for a request that waits here."""
    on_registry_change: Callable[[], None]
    """Another replica changed the registry."""


class Channel(Protocol):
    """A way to reach agents and to be reached by them."""

    def open(self, inbound: Inbound) -> AbstractAsyncContextManager[None]:
        """Start consuming; on leaving, stop consuming first, then let work in hand be settled."""
        ...

    async def prepare(self, agent_id: AgentId) -> None:
        """Make sure the agent's queue exists. Idempotent; called at registration, never per request."""
        ...

    async def send(self, agent_id: AgentId, task: TaskFrame) -> None:
        """Return once the frame is safely in the agent's queue.

        Raises UnroutableError, RefusedError or TooLargeError when it surely is not, and
        OutcomeUnknownError when nobody can say; sending the same task again is always safe (I2).
        A task without budget is refused with the code `expired`.
        """
        ...

    async def wake(self, replica_id: ReplicaId, request_id: RequestId) -> None:
        """Tell a replica to look at a request. Best effort: may be lost, never raises."""
        ...

    async def announce_registry_change(self) -> None:
        """Tell the other replicas to reload the registry. Best effort: may be lost, never raises."""
        ...

    def is_ready(self) -> bool:
        """Whether sends can work right now (connected, consumers in place)."""
        ...
