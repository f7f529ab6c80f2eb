"""What was seen of one instance, and how an agent's status follows from its instances."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from dispatcher.protocol.frames import HeartbeatFrame
from dispatcher.registry.agent import AgentStatus, Instance, Liveness, LivenessRules
from dispatcher.registry.liveness import liveness

_BY_LIVENESS = (Liveness.ALIVE, Liveness.SUSPECT, Liveness.OFFLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One instance, since when it is known here, when it was last heard of, and its last heartbeat.

    Times are in seconds of this process's hearing, which is monotonic (I10).
    """

    instance: Instance
    since: float
    seen_at: float
    heartbeat: HeartbeatFrame | None = None

    @property
    def running(self) -> int:
        """The tasks it said it runs; 0 before its first heartbeat."""
        return self.heartbeat.running if self.heartbeat else 0


def observe(known: Observation | None, row: Instance, now: float, rules: LivenessRules) -> Observation:
    """What is known of an instance after its stored row was read.

    The row's age counts for a lease not known here, and for one that was heard of elsewhere:
    stored ages lag by up to a heartbeat, so only a clearly younger one replaces our own.
    """
    stored = now - row.seen_age_s
    if known is None or known.instance.lease_id != row.lease_id:
        return Observation(instance=row, since=now, seen_at=stored)
    heard_elsewhere = stored > known.seen_at + rules.heartbeat_s
    return replace(known, instance=row, seen_at=stored if heard_elsewhere else known.seen_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What an agent's instances come to; it holds before `ends_at`, as long as none is heard of.

    `at_work` is the number of live instances that are not draining, `reported` the tasks that the
    live ones said they run.
    """

    liveness: Liveness
    at_work: int
    reported: int
    draining: bool
    ends_at: float

    def status(self, *, max_load: int, attempts_open: int) -> AgentStatus:
        """The agent's status, with what is declared and what the ledger knows."""
        return AgentStatus(
            liveness=self.liveness,
            capacity=max_load * self.at_work,
            running=max(self.reported, attempts_open),
            draining=self.draining,
        )


def summarise(observations: Iterable[Observation], *, now: float, rules: LivenessRules) -> Summary:
    """The best instance's liveness, and sums over those that are not OFFLINE.

    The agent is draining when all of its live instances are.
    """
    states = [(liveness(now - one.seen_at, rules), one) for one in observations]
    live = [one for state, one in states if state is not Liveness.OFFLINE]
    at_work = sum(not one.instance.draining for one in live)
    best = min((_BY_LIVENESS.index(state) for state, _ in states), default=len(_BY_LIVENESS) - 1)
    return Summary(
        liveness=_BY_LIVENESS[best],
        at_work=at_work,
        reported=sum(one.running for one in live),
        draining=bool(live) and not at_work,
        ends_at=min((one.seen_at + _lasts_s(state, rules) for state, one in states), default=inf),
    )


def _lasts_s(state: Liveness, rules: LivenessRules) -> float:
    """The age at which an instance leaves that state by silence alone."""
    if state is Liveness.OFFLINE:
        return inf
    return rules.suspect_after_s if state is Liveness.ALIVE else rules.offline_after_s
