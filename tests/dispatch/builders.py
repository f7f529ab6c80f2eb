"""Small states and parts for tests of the dispatch rules."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from dispatcher.dispatch.lifecycle.accept import Arrival, first_step
from dispatcher.dispatch.lifecycle.assign import AgentLoads, Assigner, Assignment, AttemptRules, Retries
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    ChatMessage,
    Request,
    RequestState,
    Task,
)
from dispatcher.identifiers import AgentId, CallerId, Capability, ReplicaId, RequestId
from dispatcher.intents.plan import Intent, Link, Plan, Source
from dispatcher.protocol.frames import PartialFrame, ResultBody, ResultFrame, ResultStatus
from dispatcher.records import replace
from dispatcher.routing.decision import Decision, Outcome, Weights

NOW = 1_000_000
ORDER = Capability("order.query")
QUOTE = Capability("promotion.quote")


def intent(position: int, capability: Capability | None = ORDER, **changes: object) -> Intent:
    """An intent with the confidence 0.9."""
    made = Intent(position=position, text=f"wish {position}", capability=capability, confidence=0.9)
    return replace(made, **changes)  # type: ignore[arg-type]


def link(field: str, *sources: tuple[int, str], required: bool = False) -> Link:
    """An input field fed by (position, output) pairs."""
    return Link(
        field=field,
        sources=tuple(Source(position=position, output=output) for position, output in sources),
        required=required,
    )


def decision(agent_id: str | None, outcome: Outcome = Outcome.SELECTED) -> Decision:
    """A decision for an agent, or for nobody."""
    return Decision(
        text="wish",
        outcome=outcome if agent_id is None else Outcome.SELECTED,
        reason="test",
        capability=ORDER,
        agent_id=AgentId(agent_id) if agent_id else None,
        similarity=0.9,
        score=0.8,
        scope_score=0.5,
        scope_floor=0.2,
        candidates=(),
        left_out={},
        weights=Weights(),
        encoder_id="test",
        registry_version=1,
        calibration="self",
        retry_after_s=None if agent_id else 3,
    )


class Agents:
    """A `Choose` over a fixed list: the first agent not tried yet, else the first, else nobody.

    It is asked for the intent's capability, or for `capability` where the list is of a near one.
    """

    capability: Capability | None = None
    described: str | None = None
    """What the caller described, where a decision is about that in the text's place."""

    def __init__(self, *agents: str, idempotent: bool = True, outcome: Outcome = Outcome.UNAVAILABLE):
        self.agents = list(agents)
        self.idempotent = idempotent
        self.outcome = outcome

    def __call__(
        self,
        request: Request,
        intent: Intent,
        task: Task,
        tried: frozenset[AgentId],
        inputs: Mapping[str, object] | None = None,
    ) -> Assignment:
        left = [agent for agent in self.agents if agent not in tried] or self.agents
        made = decision(left[0] if left else None, self.outcome)
        capability = self.capability or intent.capability or made.capability
        made = replace(made, text=self.described or intent.text, capability=capability)
        return Assignment(decision=made, idempotent=self.idempotent, timeout_ms=30_000)


@dataclass
class Loads:
    """Counts what it is told; every agent has room for `room` tasks and `idle` ones are idle."""

    room: int = 1000
    idle: bool = False
    open: dict[AgentId, int] = field(default_factory=dict)
    outcomes: list[tuple[AgentId, bool]] = field(default_factory=list)
    paces: dict[AgentId, float] = field(default_factory=dict)

    def has_room(self, agent_id: AgentId) -> bool:
        return self.open.get(agent_id, 0) < self.room

    def add_open(self, agent_id: AgentId, delta: int) -> None:
        self.open[agent_id] = self.open.get(agent_id, 0) + delta

    def record_outcome(self, agent_id: AgentId, capability: Capability, *, succeeded: bool) -> None:
        self.outcomes.append((agent_id, succeeded))

    def capacity(self, agent_id: AgentId) -> int:
        return self.room

    def pace(self, agent_id: AgentId) -> float | None:
        return self.paces.get(agent_id)

    def has_waiting(self, agent_id: AgentId) -> bool:
        return self.open.get(agent_id, 0) > self.room

    def idle_agents(self) -> list[AgentId]:
        return list(self.open) if self.idle else []


class AtOnce:
    """A retry budget without bounds."""

    def count_first(self) -> None:
        pass

    def delay_ms(self, caller: CallerId, agent_id: AgentId, within_ms: int) -> int:
        return 0


class Spent(AtOnce):
    """A retry budget that allows nothing any more."""

    def delay_ms(self, caller: CallerId, agent_id: AgentId, within_ms: int) -> None:  # type: ignore[override]
        return None


def assigner(
    choose: Agents | None = None,
    *,
    loads: AgentLoads | None = None,
    rules: AttemptRules | None = None,
    retries: Retries | None = None,
) -> Assigner:
    """An assigner of replica `r1` with numbered tokens and a seeded source of chance."""
    numbers = iter(range(1, 1000))
    return Assigner(
        rules=rules or AttemptRules(),
        choose=choose or Agents("a1", "a2"),
        loads=loads or Loads(),
        retries=retries or AtOnce(),
        new_token=lambda: f"token-of-attempt-{next(numbers):04}",
        chance=random.Random(1),
        replica=ReplicaId("r1"),
    )


def arrival(*intents: Intent, language: str = "en") -> Arrival:
    """A planned message of these intents, or of one."""
    return Arrival(
        request_id=RequestId("q1"),
        caller=CallerId("shop"),
        message=ChatMessage(message="a message", environment="production"),
        plan=Plan(intents=intents or (intent(0),), language=language),
    )


def accepted(*intents: Intent, by: Assigner | None = None, language: str = "en") -> RequestState:
    """The state right after these intents were accepted at NOW."""
    return first_step(arrival(*intents, language=language), NOW, by or assigner()).state


def published(state: RequestState, position: int = 0) -> RequestState:
    """The state with the newest attempt of a task published at NOW."""
    newest = state.attempts_of(state.tasks[position].task_id)[-1]
    sent = replace(newest, status=AttemptStatus.PUBLISHED, published_ms=NOW, lapse_ms=NOW + newest.timeout_ms)
    attempts = tuple(sent if a == newest else a for a in state.attempts)
    return replace(state, attempts=attempts)


def newest(state: RequestState, position: int = 0) -> Attempt:
    """The newest attempt of a task."""
    return state.attempts_of(state.tasks[position].task_id)[-1]


def task_of(state: RequestState, position: int = 0) -> Task:
    """The task at a position."""
    return state.tasks[position]


def result(given: Attempt, /, status: ResultStatus = ResultStatus.SUCCESS, **changes: object) -> ResultFrame:
    """A result frame with the attempt's own token."""
    fields: dict[str, object] = {
        "request_id": given.request_id,
        "task_id": given.task_id,
        "attempt": given.number,
        "token": given.token,
        "instance_id": "i1",
        "status": status,
        "result": ResultBody(text="done", data={"amount": 12.5}),
    }
    return ResultFrame.model_validate({**fields, **changes})


def piece(given: Attempt, /, sequence: int) -> PartialFrame:
    """A piece of the attempt's result, with its own token; its text is its number."""
    return PartialFrame(
        request_id=given.request_id,
        task_id=given.task_id,
        attempt=given.number,
        token=given.token,
        instance_id="i1",
        sequence=sequence,
        result=ResultBody(text=str(sequence)),
    )


def with_id(state: RequestState, request_id: RequestId) -> RequestState:
    """The same state of a request with another id."""
    return replace(
        state,
        request=replace(state.request, request_id=request_id),
        tasks=tuple(replace(task, request_id=request_id) for task in state.tasks),
        attempts=tuple(replace(attempt, request_id=request_id) for attempt in state.attempts),
    )
