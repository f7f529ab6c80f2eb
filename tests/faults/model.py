"""Every way that one task can go at two agents: an exhaustive walk over the real rules of ledger and inbox.

The world around the rules is as bad as a transport may be: task and result frames wait, come late or
come twice, agents crash with a run in hand and start again, a gateway's publish may be sent though
its confirmation is lost, attempts run out of time. What is walked is `first_step`, `settle`,
`expire`, `not_delivered` and the agents' `judge`; times are kept relative to now, so that equal
situations are visited once. `python -m tests.faults.model [DEPTH]` prints the number of states.
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from dispatcher import records
from dispatcher.dispatch.lifecycle.accept import first_step
from dispatcher.dispatch.lifecycle.assign import Assigner, AttemptRules
from dispatcher.dispatch.lifecycle.expire import expire, not_delivered, publish_again
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    RequestState,
    RequestStatus,
    ResultKind,
)
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.identifiers import ReplicaId
from dispatcher.protocol.frames import ResultBody, ResultStatus
from dispatcher.sdk.inbox import Claim, Judgement, Record, Verdict, judge
from tests.dispatch.builders import NOW, Agents, AtOnce, Loads, arrival, result
from tests.faults.situations import Made, Situations

AGENTS = ("a1", "a2")
DEPTH = 9
MOST_COPIES = 2
RULES = AttemptRules(attempt_timeout_ms=10_000, delay_min_ms=100, delay_max_ms=100, claim_ms=40_000)
_RUNNING = "running"
_FAR_MS = 10_000_000
DECLINED, UNKNOWN = 0, -1
"""What is told instead of a run's number."""
_STATUS = {DECLINED: ResultStatus.EXPIRED, UNKNOWN: ResultStatus.ERROR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A result frame on its way: which attempt it is for, and which run it tells of."""

    attempt: int
    run: int

    def __str__(self) -> str:
        return f"{_STATUS.get(self.run, f'run {self.run}')} for attempt {self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorld:
    """One agent: frames in its queue, the delivery it has in hand, and its inbox."""

    queue: tuple[int, ...] = ()
    """Attempt numbers of task frames."""
    running: int | None = None
    """The attempt whose delivery runs now."""
    owner: int = 0
    """Grows with every restart."""
    record: tuple[int, int, str] | None = None
    """Owner, attempt and outcome (`running`, or the run's number, 0 for a refusal) of the one key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The ledger's state, now, and everything outside of it. `starts` are handler starts by agent."""

    state: RequestState
    now: int
    agents: tuple[AgentWorld, AgentWorld] = (AgentWorld(), AgentWorld())
    results: tuple[Told, ...] = ()
    starts: tuple[int, int] = (0, 0)
    accepted: int = 0
    path: tuple[str, ...] = ()
    """What happened so far; no part of the situation."""

    def outside(self) -> tuple[object, ...]:
        """What there is beside the ledger."""
        return self.agents, self.results, self.starts, self.accepted


Event = tuple[str, World]
Leave = Callable[[World, Attempt], Attempt]
Item = TypeVar("Item")


class Model:
    """The walk for a task that is idempotent or not; `durable`: inboxes survive a crash."""

    def __init__(self, *, idempotent: bool, durable: bool = True) -> None:
        self._idempotent = idempotent
        self._durable = durable
        self.doubled: list[tuple[str, ...]] = []
        """Ways to a start that I2 forbids, shortest first."""
        self._situations = Situations()

    def explore(self, depth: int = DEPTH) -> int:
        """Visit every state within `depth` events; the number of different ones.

        Fails where I1, I3 or I7 is broken; starts that I2 forbids are kept in `doubled`.
        """
        first = World(state=first_step(arrival(), NOW, self._assigner(0)).state, now=NOW)
        seen, edge = {(self._situation(first), first.outside())}, [first]
        for _ in range(depth):
            following: list[World] = []
            for world in edge:
                self._check_end(world)
                for event, after in self._events(world):
                    situation = self._situation(after)
                    key = (situation, after.outside())
                    if key not in seen:
                        seen.add(key)
                        state, now = self._situations.first(situation)
                        following.append(replace(after, state=state, now=now, path=(*world.path, event)))
            edge = following
        return len(seen)

    def _situation(self, world: World) -> int:
        return self._situations.number(world.state, world.now)

    def _once(self, world: World, event: str, make: Callable[[], Made]) -> Made:
        """What a rule makes of the ledger, which is the same whatever there is beside it."""
        return self._situations.once(world.state, world.now, event, make)

    def _assigner(self, attempts: int) -> Assigner:
        """Always the same for the same state, so that a step depends on nothing else."""
        numbers = iter(range(attempts + 1, attempts + 10))
        return Assigner(
            rules=RULES,
            choose=Agents(*AGENTS, idempotent=self._idempotent),
            loads=Loads(),
            retries=AtOnce(),
            new_token=lambda: f"token-of-attempt-{next(numbers):04}",
            chance=random.Random(1),
            replica=ReplicaId("r1"),
        )

    def _by(self, world: World) -> Assigner:
        return self._assigner(len(world.state.attempts))

    def _events(self, world: World) -> Iterator[Event]:
        """Everything that can happen next."""
        yield from self._gateway(world)
        yield from self._collected(world)
        yield from self._time_passes(world)
        for number, agent in enumerate(world.agents):
            yield from self._delivered(world, number, agent)
            yield from self._crashed(world, number, agent)

    def _gateway(self, world: World) -> Iterator[Event]:
        """Publish, confirmed or not; refused by the broker; found lost by the reconcile pass."""
        for attempt in world.state.attempts:
            if attempt.status is AttemptStatus.DUE and attempt.not_before_ms <= world.now:
                sent = _queued(world, attempt)
                which = f"attempt {attempt.number}"
                yield f"{which} published", self._sent(sent, attempt, f"{which} published", _published)
                unconfirmed = f"{which} published, unconfirmed"
                yield unconfirmed, self._sent(sent, attempt, unconfirmed, _claimed_again)
                yield f"{which} refused", self._step(world, self._refused(world, attempt))
            elif attempt.status is AttemptStatus.PUBLISHED:
                event = f"attempt {attempt.number} taken for lost"
                yield event, self._step(world, self._once(world, event, partial(_due_again, world, attempt)))

    def _sent(self, world: World, attempt: Attempt, event: str, left: Leave) -> World:
        state = self._once(world, event, lambda: _changed(world, left(world, attempt)).state)
        return replace(world, state=state)

    def _refused(self, world: World, attempt: Attempt) -> Step:
        event = f"attempt {attempt.number} refused"
        refuse = partial(not_delivered, world.state, world.now, attempt, "refused", self._by(world))
        return self._once(world, event, refuse)

    def _collected(self, world: World) -> Iterator[Event]:
        """A result frame reaches the ledger; the broker may deliver it once more."""
        for told in set(world.results):
            after = self._step(world, self._once(world, f"{told}", partial(self._settled, world, told)))
            yield f"collected {told}", replace(after, results=_without(world.results, told))
            yield f"collected {told}, not acknowledged", after

    def _settled(self, world: World, told: Told) -> Step:
        attempt = world.state.attempts[told.attempt - 1]
        status = _STATUS.get(told.run, ResultStatus.SUCCESS)
        frame = result(attempt, status, result=ResultBody(text=f"run {told.run}"))
        return settle(world.state, world.now, frame, self._by(world))

    def _time_passes(self, world: World) -> Iterator[Event]:
        """To the next moment at which something is due, then the sweep looks."""
        request, (task,) = world.state.request, world.state.tasks
        if request.status is not RequestStatus.OPEN:
            return
        times = [request.deadline_ms, task.deadline_ms or 0]
        for attempt in world.state.attempts:
            times += [attempt.not_before_ms, attempt.lapse_ms or 0]
        later = [time for time in times if time > world.now]
        if later:
            moved = replace(world, now=min(later))
            expired = self._once(
                world, "time passes", lambda: expire(moved.state, moved.now, self._by(moved))
            )
            yield "time passes", self._step(moved, expired)

    def _delivered(self, world: World, number: int, agent: AgentWorld) -> Iterator[Event]:
        """The agent takes a frame in time, or too late; a frame comes twice; a run ends."""
        for attempt in set(agent.queue):
            taken = replace(agent, queue=_without(agent.queue, attempt))
            yield from self._judged(world, number, taken, attempt, may_start=True)
            yield from self._judged(world, number, taken, attempt, may_start=False)
            if agent.queue.count(attempt) < MOST_COPIES:
                twice = replace(agent, queue=tuple(sorted((*agent.queue, attempt))))
                yield f"attempt {attempt} delivered twice", _with_agent(world, number, twice)
        if agent.running is not None and agent.record is not None:
            run = sum(world.starts)
            done = replace(agent, running=None, record=(agent.owner, agent.record[1], str(run)))
            told = Told(attempt=agent.running, run=run)
            yield f"{AGENTS[number]} ends run {run}", _told(_with_agent(world, number, done), told)

    def _judged(
        self, world: World, number: int, agent: AgentWorld, attempt: int, *, may_start: bool
    ) -> Iterator[Event]:
        if agent.running is not None:
            return  # the key is taken by a run here: the delivery waits
        claim = Claim(
            key="k",
            owner=str(agent.owner),
            attempt=attempt,
            idempotent=self._idempotent,
            hold_s=1,
            may_start=may_start,
            refusal=None if may_start or self._idempotent else str(DECLINED).encode(),
        )
        judgement = judge(_record(agent), claim, 0.0)
        for event, after in self._follow(world, number, agent, attempt, judgement):
            yield f"{AGENTS[number]} takes attempt {attempt}: {event}", after

    def _follow(
        self, world: World, number: int, agent: AgentWorld, attempt: int, judgement: Judgement
    ) -> Iterator[Event]:
        before, agent = agent, _remembering(agent, judgement)
        match judgement.verdict:
            case Verdict.RUN:
                starts = list(world.starts)
                starts[number] += 1
                began = replace(agent, running=attempt)
                self._check_start(world, before, attempt)
                yield "runs", replace(_with_agent(world, number, began), starts=(starts[0], starts[1]))
            case Verdict.REPLAY if judgement.outcome is not None:
                told = Told(attempt=attempt, run=int(judgement.outcome))
                yield "replays", _told(_with_agent(world, number, agent), told)
            case Verdict.NOT_STARTED:
                yield (
                    "declines",
                    _told(_with_agent(world, number, agent), Told(attempt=attempt, run=DECLINED)),
                )
            case Verdict.UNKNOWN:
                unknown = Told(attempt=attempt, run=UNKNOWN)
                yield "does not know", _told(_with_agent(world, number, agent), unknown)

    def _crashed(self, world: World, number: int, agent: AgentWorld) -> Iterator[Event]:
        """The process dies and starts again; what it had in hand is delivered once more."""
        if agent.running is None:
            return
        queue = tuple(sorted((*agent.queue, agent.running)))
        record = agent.record if self._durable else None
        crashed = replace(agent, running=None, queue=queue, owner=agent.owner + 1, record=record)
        yield f"{AGENTS[number]} crashes", _with_agent(world, number, crashed)

    def _check_start(self, world: World, agent: AgentWorld, attempt: int) -> None:
        """I2, at the agent's own inbox and for what must not be repeated anywhere."""
        was_stored = agent.record is not None and agent.record[2] not in {_RUNNING, str(DECLINED)}
        if was_stored or (not self._idempotent and world.starts != (0, 0)):
            self.doubled.append((*world.path, f"{attempt} starts again"))

    def _step(self, world: World, step: Step) -> World:
        """The world after a rule's step; checks I1, I3 and I7 on the way."""
        (before,), (after,) = world.state.tasks, step.state.tasks
        assert not before.status.is_terminal or before == after, "I3: a terminal task changed"
        assert world.state.request.status is RequestStatus.OPEN or world.state.request == step.state.request
        accepted = world.accepted + sum(record.kind is ResultKind.ACCEPTED for record in step.results)
        assert accepted <= 1, "I3: two results accepted"
        assert len(step.state.attempts) <= RULES.max_attempts, "I7: too many attempts"
        is_over = step.state.request.status is not RequestStatus.OPEN
        assert is_over == after.status.is_terminal, "I1: request and task disagree about the end"
        return replace(world, state=step.state, accepted=accepted)

    def _check_end(self, world: World) -> None:
        """I1: whatever happened, the deadline ends it, with one answer and nothing left open."""
        over = self._once(
            world, "the end", lambda: expire(world.state, world.now + _FAR_MS, self._by(world)).state
        )
        assert over.request.status is not RequestStatus.OPEN
        assert over.request.answer
        assert not any(attempt.status.is_open for attempt in over.attempts)


def _record(agent: AgentWorld) -> Record | None:
    if agent.record is None:
        return None
    owner, attempt, outcome = agent.record
    stored = None if outcome == _RUNNING else outcome.encode()
    # An owner that is not this process is surely dead: the inbox is one process's at a time.
    return Record(
        owner=str(owner),
        attempt=attempt,
        expires_at=0.0,
        outcome=stored,
        retryable=outcome == str(DECLINED),
    )


def _remembering(agent: AgentWorld, judgement: Judgement) -> AgentWorld:
    """The agent after its inbox stored what the judgement says."""
    kept = judgement.record
    if kept is None:
        return agent
    outcome = _RUNNING if kept.outcome is None else kept.outcome.decode()
    return replace(agent, record=(agent.owner, kept.attempt, outcome))


def _without(items: tuple[Item, ...], item: Item) -> tuple[Item, ...]:
    position = items.index(item)
    return (*items[:position], *items[position + 1 :])


def _with_agent(world: World, number: int, agent: AgentWorld) -> World:
    agents = (agent, world.agents[1]) if number == 0 else (world.agents[0], agent)
    return replace(world, agents=agents)


def _told(world: World, told: Told) -> World:
    if world.results.count(told) >= MOST_COPIES:
        return world
    return replace(world, results=tuple(sorted((*world.results, told), key=lambda t: (t.attempt, t.run))))


def _queued(world: World, attempt: Attempt) -> World:
    number = AGENTS.index(attempt.agent_id)
    agent = world.agents[number]
    if agent.queue.count(attempt.number) >= MOST_COPIES:
        return world
    return _with_agent(world, number, replace(agent, queue=tuple(sorted((*agent.queue, attempt.number)))))


def _changed(world: World, attempt: Attempt) -> World:
    attempts = tuple(attempt if a.number == attempt.number else a for a in world.state.attempts)
    return replace(world, state=records.replace(world.state, attempts=attempts))


def _published(world: World, attempt: Attempt) -> Attempt:
    """As `Ledger.mark_published` leaves it."""
    deadline = world.state.tasks[0].deadline_ms or world.now
    lapse_ms = min(world.now + attempt.timeout_ms, deadline)
    return records.replace(attempt, status=AttemptStatus.PUBLISHED, published_ms=world.now, lapse_ms=lapse_ms)


def _claimed_again(world: World, attempt: Attempt) -> Attempt:
    """Sent, but nobody knows: the claim ran out and `Ledger.claim_due` gave it to the next one."""
    until = world.now + RULES.claim_ms
    sent = attempt.published_ms or world.now
    return records.replace(attempt, published_ms=sent, claimed_by=ReplicaId("r1"), claimed_until_ms=until)


def _due_again(world: World, attempt: Attempt) -> Step:
    step = publish_again(world.state, world.now, attempt)
    (due,) = (a for a in step.state.attempts if a.number == attempt.number)
    changed = _changed(replace(world, state=step.state), _claimed_again(world, due))
    return records.replace(step, state=changed.state)


def main(arguments: Sequence[str]) -> int:
    """Walk all of it and say how much that was; 1 where a start was found that I2 forbids."""
    depth = int(arguments[0]) if arguments else DEPTH
    found = 0
    for idempotent in (True, False):
        model = Model(idempotent=idempotent)
        states = model.explore(depth)
        found += len(model.doubled)
        print(f"{states} states within {depth} events, idempotent={idempotent}")
        print(f"starts that I2 forbids: {len(model.doubled)}")
        for event in model.doubled[0] if model.doubled else ():
            print(f"    {event}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
