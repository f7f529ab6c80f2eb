"""The dispatcher's side of delivery: one protocol, several ways to reach agents.

Contract, tested for every implementation in tests/conformance: a task whose `send` returned
reaches an instance of the agent at least once within its budget, and never after it: what waited
longer goes to the dead letters. A result is handed to `on_result` until that returns ACK or DEAD,
or failed too often; frames that can't be read never block those behind them.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.protocol.frames import CancelFrame, TaskFrame
from dispatcher.protocol.link import Settlement


def _ignore(*_: object) -> None:
    """For those who need not know."""


async def _ignore_loss(*_: object) -> None:
    """For those who keep no ledger."""


class DeadReason(StrEnum):
    """Why a transport gave up a frame."""

    REJECTED = "rejected"
    """Whoever got it could not read it, or it always failed."""
    DELIVERY_LIMIT = "delivery_limit"
    """It was given back too often: those who got it may have died of it."""
    EXPIRED = "expired"
    """It was not fetched within its time."""


RESULTS = "results"
"""The source of dead frames that agents sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A frame that was given up; `source` is the agent it was for, or RESULTS."""

    source: str
    body: bytes
    reason: DeadReason


async def _drop(_dead: Dead) -> Settlement:
    return Settlement.ACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """Where a channel hands over what arrives. None of these is meant to raise."""

    on_result: Callable[[bytes], Awaitable[Settlement]]
    """An encoded result or signal frame; the settlement it returns is carried out.

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
    on_dead: Callable[[Dead], Awaitable[Settlement]] = _drop
    """A frame that was given up; gone once this returns ACK."""
    on_hearing: Callable[[bool], None] = _ignore
    """Whether heartbeats arrive from now on; a channel that can always hear never says so."""
    on_queue_lost: Callable[[AgentId], Awaitable[None]] = _ignore_loss
    """What was in the agent's queue is gone, and the queue is there again.

    Whatever was sent to that agent and has no result should be sent again; what the agent has
    already, its inbox knows (I2).
    """


class Channel(Protocol):
    """A way to reach agents and to be reached by them."""

    def open(self, inbound: Inbound) -> AbstractAsyncContextManager[None]:
        """Start consuming; on leaving, stop consuming first, then let work in hand be settled."""
        ...

    async def prepare(self, agent_id: AgentId) -> None:
        """Make sure the agent's queue exists. Idempotent; called at registration, never per request."""
        ...

    async def send(self, agent_id: AgentId, task: TaskFrame, *, bound: bool = False) -> None:
        """Return once the frame is safely in the agent's queue.

        `bound`: the task may run at this agent from an earlier send, and must run nowhere else. That
        this send did not start it says nothing then, and is not told as a result.

        Raises UnroutableError, RefusedError or TooLargeError when it surely is not, and
        OutcomeUnknownError when nobody can say; sending the same task again is always safe (I2).
        NotSentError is one where the channel itself was not there: it surely wrote nothing.
        A task without budget is refused with the code `expired`.
        """
        ...

    async def cancel(self, agent_id: AgentId, frame: CancelFrame) -> None:
        """Tell every instance of the agent to stop a task. Best effort: may be lost, never raises."""
        ...

    async def wake(self, replica_id: ReplicaId, request_id: RequestId) -> None:
        """Tell a replica to look at a request. Best effort: may be lost, never raises."""
        ...

    async def announce_registry_change(self) -> None:
        """Tell the other replicas to reload the registry. Best effort: may be lost, never raises."""
        ...

    def problem(self) -> str | None:
        """Why sends can't work right now, in one sentence; None when they can."""
        ...

    def is_ready(self) -> bool:
        """Whether sends can work right now: there is no problem."""
        ...
