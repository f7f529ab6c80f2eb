"""Which agents may take an intent: the funnel after the scope decision, each step with its reason.

An agent is left out for the first step it fails: grants, environment, hours, payload size, health,
already tried, load. The last two leave nobody out who is the only one left.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import Hours
from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.routing.decision import Rejection
from dispatcher.routing.slots import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a request asks of an agent beside the capability. `now` is aware."""

    allows: Callable[[Capability], bool]
    environment: str
    payload_bytes: int
    tried: frozenset[AgentId]
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """An agent of the winning capability as it is now."""

    key: Key
    agent: Agent
    status: AgentStatus


def rejections(prospects: Iterable[Prospect], demand: Demand, saturation: float) -> Mapping[Key, Rejection]:
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
    free = [prospect for prospect in fresh if prospect.status.load < saturation] or fresh
    reasons |= dict.fromkeys((prospect.key for prospect in fit), Rejection.ALREADY_TRIED)
    reasons |= dict.fromkeys((prospect.key for prospect in fresh), Rejection.SATURATED)
    for prospect in free:
        del reasons[prospect.key]
    return reasons


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
    declaration, status = prospect.agent.declaration, prospect.status
    is_offline = status.liveness is Liveness.OFFLINE or (status.capacity == 0 and not status.draining)
    steps = (
        (demand.allows(prospect.key.capability), Rejection.NOT_GRANTED),
        (prospect.agent.environment == demand.environment, Rejection.ENVIRONMENT),
        (is_open(declaration.available_hours, demand.now), Rejection.HOURS),
        (demand.payload_bytes <= declaration.max_payload_bytes, Rejection.PAYLOAD_SIZE),
        (not is_offline, Rejection.OFFLINE),
        (not status.draining, Rejection.DRAINING),
    )
    return next((reason for passes, reason in steps if not passes), None)
