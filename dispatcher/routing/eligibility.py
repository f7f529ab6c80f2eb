"""Which agents may take an intent: the funnel after the scope decision, each step with its reason.

An agent is left out for the first step it fails: grants, environment, hours, payload size, health,
already tried, load. The last two leave nobody out who is the only one left, and load nobody for a
suspect's sake: whoever sends heartbeats goes before it, however busy.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, time
from typing import Protocol
from zoneinfo import ZoneInfo

from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import Hours
from dispatcher.records import Struct
from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.routing.decision import Rejection
from dispatcher.routing.slots import Key


class Demand(Struct, frozen=True, kw_only=True):
    """What a request asks of an agent beside the capability. `now` is aware, in UTC.

    `payload_bytes` is the size of the task frame; agents in `tried` are chosen only where no other
    can be.
    """

    allows: Callable[[Capability], bool]
    environment: str
    payload_bytes: int
    tried: frozenset[AgentId]
    now: datetime


class Prospect(Protocol):
    """An agent of the winning capability as it is now."""

    @property
    def key(self) -> Key:
        """The agent and the capability."""
        ...

    @property
    def agent(self) -> Agent:
        """What is declared."""
        ...

    @property
    def status(self) -> AgentStatus:
        """What was observed."""
        ...


def rejections(prospects: Iterable[Prospect], demand: Demand, saturation: float) -> dict[Key, Rejection]:
    """The reason for each prospect that is left out; who is not in it may take the intent."""
    reasons: dict[Key, Rejection] = {}
    fit: list[Prospect] = []
    for prospect in prospects:
        reason = _unfit(prospect, demand)
        if reason is None:
            fit.append(prospect)
        else:
            reasons[prospect.key] = reason
    fresh = [prospect for prospect in fit if prospect.key.agent_id not in demand.tried] or fit
    free = [prospect for prospect in fresh if prospect.status.load < saturation]
    if len(free) < len(fresh) and not _is_better_off(free, fresh):
        free = fresh
    if len(free) < len(fit):
        reasons |= dict.fromkeys((prospect.key for prospect in fit), Rejection.ALREADY_TRIED)
        reasons |= dict.fromkeys((prospect.key for prospect in fresh), Rejection.SATURATED)
        for prospect in free:
            del reasons[prospect.key]
    return reasons


def _is_better_off(free: list[Prospect], fresh: list[Prospect]) -> bool:
    """Whether those with room are a reason to leave out the others."""

    def is_heard(prospect: Prospect) -> bool:
        return prospect.status.liveness is not Liveness.SUSPECT

    return any(map(is_heard, free)) or (bool(free) and not any(map(is_heard, fresh)))


def is_open(hours: Hours | None, now: datetime) -> bool:
    """Whether an agent with these hours works now; the end is exclusive, equal ends mean all day."""
    if hours is None or hours.start == hours.end:
        return True
    local = now.astimezone(ZoneInfo(hours.time_zone)).time().replace(tzinfo=None)
    start, end = time.fromisoformat(hours.start), time.fromisoformat(hours.end)
    if start < end:
        return start <= local < end
    return local >= start or local < end


def _unfit(prospect: Prospect, demand: Demand) -> Rejection | None:
    agent = prospect.agent
    if not demand.allows(prospect.key.capability):
        return Rejection.NOT_GRANTED
    if agent.environment != demand.environment:
        return Rejection.ENVIRONMENT
    if not is_open(agent.declaration.available_hours, demand.now):
        return Rejection.HOURS
    if demand.payload_bytes > agent.declaration.max_payload_bytes:
        return Rejection.PAYLOAD_SIZE
    return _absent(prospect.status)


def _absent(status: AgentStatus) -> Rejection | None:
    if status.liveness is Liveness.OFFLINE:
        return Rejection.OFFLINE
    if status.draining:
        return Rejection.DRAINING
    return Rejection.OFFLINE if status.capacity == 0 else None
