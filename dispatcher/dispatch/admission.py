"""The bound on work that waits: what is over it is refused before it is accepted, never after (I9)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from dispatcher.errors import OverloadedError
from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionBounds:
    """At most `max_open` attempts are open in all, and `max_backlog` wait for an agent that is full.

    At most `max_handoffs` parts wait for a person. Counts are of the whole ledger, about a second old
    where other replicas accepted.
    """

    max_open: int = 10_000
    max_backlog: int = 1_000
    max_handoffs: int = 10_000
    retry_after_s: int = 2


@dataclass(slots=True, kw_only=True)
class OpenHandoffs:
    """How many parts wait for a person: `count` as counted last and accepted here since.

    `reserved` are of messages that are being accepted, `since` what was accepted since a count began.
    """

    count: int = 0
    reserved: int = 0
    since: int = 0

    def begin_count(self) -> None:
        """The ledger is being asked for the number that `set_count` gets."""
        self.since = 0

    def set_count(self, waiting: int) -> None:
        """So many wait; what was accepted since `begin_count` comes on top, for that may not be among them.

        What is, counts double until the next count, which keeps the bound.
        """
        self.count = waiting + self.since

    def add(self, parts: int) -> None:
        """So many were accepted."""
        self.count += parts
        self.since += parts


class Backlog(Protocol):
    """How much waits for whom; the registry's live view."""

    def total_open(self) -> int:
        """Attempts open at all agents."""
        ...

    def open_at(self, agent_id: AgentId) -> int:
        """Attempts open at the agent."""
        ...

    def capacity(self, agent_id: AgentId) -> int:
        """How many tasks the agent's live instances run at once."""
        ...

    def group(self, capability: Capability) -> Sequence[Agent]:
        """Every registered agent that declares the capability."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Asked twice: before a message is understood, and once it is known who would have to do it.

    `handoffs` is whose count People keeps.
    """

    backlog: Backlog
    bounds: AdmissionBounds
    handoffs: OpenHandoffs = field(default_factory=OpenHandoffs)

    def check_total(self) -> None:
        """Raise OverloadedError (`too_much_open`) when no more may be accepted at all."""
        if self.backlog.total_open() >= self.bounds.max_open:
            raise self._refusal("more work is open than may be", "too_much_open")

    def check(self, capabilities: Iterable[Capability | None], environment: str) -> None:
        """Raise OverloadedError (`backlog_full`) when nobody who can do one of these has room for more.

        Agents that are gone, or of another environment, can't; where all are, nothing would wait.
        """
        for capability in capabilities:
            if capability is not None and self._is_flooded(capability, environment):
                raise self._refusal("too much waits for the agents that could do this", "backlog_full")

    def reserving(self, parts: int) -> AbstractContextManager[None]:
        """Keep room for parts that a person would do, until they are added or not accepted.

        Raises OverloadedError (`too_many_handoffs`) when so many more may not wait for a person.
        """
        return self._reserving(parts) if parts else nullcontext()

    @contextmanager
    def _reserving(self, parts: int) -> Iterator[None]:
        taken = self.handoffs.count + self.handoffs.reserved
        if taken + parts > self.bounds.max_handoffs:
            raise self._refusal("too much waits for a person", "too_many_handoffs")
        self.handoffs.reserved += parts
        try:
            yield
        finally:
            self.handoffs.reserved -= parts

    def _is_flooded(self, capability: Capability, environment: str) -> bool:
        somebody_can = False
        for agent in self.backlog.group(capability):
            if agent.environment == environment and (capacity := self.backlog.capacity(agent.agent_id)):
                if self.backlog.open_at(agent.agent_id) < capacity + self.bounds.max_backlog:
                    return False
                somebody_can = True
        return somebody_can

    def _refusal(self, message: str, code: str) -> OverloadedError:
        return OverloadedError(message, retry_after_s=self.bounds.retry_after_s, code=code)
