"""Requests, offers and rules for the tests of the ledger."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.clock import Clock, SystemClock
from dispatcher.dispatch.lifecycle.ledger import Change, Decide, Offer, Step
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    DecisionRecord,
    Request,
    RequestState,
    RequestStatus,
    ResultKind,
    ResultRecord,
    Task,
    TaskStatus,
)
from dispatcher.identifiers import (
    AgentId,
    CallerId,
    Capability,
    InstanceId,
    ReplicaId,
    RequestId,
    TaskId,
    new_id,
)
from dispatcher.intents.plan import Entity, EntityKind, Intent, Link, Source
from dispatcher.records import replace
from dispatcher.store.engine import open_engine
from dispatcher.store.ledger import SqlLedger

CALLER = CallerId("shop")
REPLICA = ReplicaId("replica-1")
AGENT = AgentId("order-agent")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def request_of(request_id: RequestId, now: int) -> Request:
    return Request(
        request_id=request_id,
        caller=CALLER,
        replica=REPLICA,
        message="我上周买的手机怎么还没发货？ Is there a discount?",
        language="zh",
        environment="production",
        session_id="session-1",
        user_id="user-1",
        context={"tier": "gold", "basket": [1, 2.5, None, {"sku": "a"}]},
        idempotency_key=None,
        body_digest="digest",
        status=RequestStatus.OPEN,
        answer=None,
        created_ms=now,
        deadline_ms=now + HOUR_MS,
    )


def intents_of() -> tuple[Intent, Intent]:
    first = Intent(
        position=0,
        text="我上周买的手机怎么还没发货",
        capability=Capability("order.query"),
        confidence=0.91,
        entities=(Entity(kind=EntityKind.AMOUNT, text="99元", value=99.0, start=0, end=3),),
        inputs={"amount": 99.0},
    )
    source = Source(position=0, output="amount")
    second = Intent(
        position=1,
        text="Is there a discount",
        capability=Capability("promotion.query"),
        confidence=0.8,
        links=(Link(field="amount", sources=(source,), required=True),),
        missing=("member_id",),
        labels=("会员号",),
    )
    return first, second


def attempt_of(task: Task, number: int, now: int, *, agent: AgentId = AGENT) -> Attempt:
    return Attempt(
        task_id=task.task_id,
        request_id=task.request_id,
        number=number,
        agent_id=agent,
        token=f"token-{task.task_id}-{number}",
        status=AttemptStatus.DUE,
        not_before_ms=now,
        timeout_ms=10_000,
    )


def state_of(request_id: RequestId, now: int, *, agent: AgentId = AGENT) -> RequestState:
    """Two intents; the first one's task has a due attempt, the second's waits for it."""
    intents = intents_of()
    tasks = tuple(
        Task(
            task_id=TaskId(f"{request_id}/{intent.position}"),
            request_id=request_id,
            position=intent.position,
            capability=intent.capability,
            status=TaskStatus.OPEN if intent.position == 0 else TaskStatus.WAITING,
            idempotent=True,
            timeout_ms=30_000,
            similarity=intent.confidence,
            inputs=intent.inputs,
            agent_id=agent if intent.position == 0 else None,
            score=0.7,
        )
        for intent in intents
    )
    return RequestState(
        request=request_of(request_id, now),
        intents=intents,
        tasks=tasks,
        attempts=(attempt_of(tasks[0], 1, now, agent=agent),),
    )


def decision_of(request_id: RequestId, number: int = 1) -> DecisionRecord:
    return DecisionRecord(request_id=request_id, position=0, number=number, document='{"outcome":"selected"}')


def offer_of(
    *,
    key: str | None = None,
    caller: CallerId = CALLER,
    agent: AgentId = AGENT,
    request_id: RequestId | None = None,
    digest: str = "digest",
) -> Offer:
    chosen = request_id or RequestId(new_id())

    def build(now: int) -> Step:
        state = state_of(chosen, now, agent=agent)
        request = replace(state.request, caller=caller, idempotency_key=key, body_digest=digest)
        return Step(state=replace(state, request=request), decisions=(decision_of(chosen),))

    return Offer(request_id=chosen, caller=caller, idempotency_key=key, body_digest=digest, build=build)


async def accepted(ledger: SqlLedger, offer: Offer | None = None) -> RequestState:
    """The state of a request that was just accepted."""
    change = await ledger.accept(offer or offer_of())
    assert isinstance(change, Change)
    return change.after


def collect(text: str) -> Decide:
    """A rule that takes a result for the first task: the first one counts, and frees the second task."""

    def decide(state: RequestState, now: int) -> Step:
        first, second = state.tasks
        kind = ResultKind.DUPLICATE if first.status.is_terminal else ResultKind.ACCEPTED
        record = ResultRecord(
            task_id=first.task_id,
            request_id=state.request.request_id,
            attempt=1,
            instance_id=InstanceId("instance-1"),
            kind=kind,
            document=f'{{"text":"{text}"}}',
        )
        if kind is ResultKind.DUPLICATE:
            return Step(state=state, results=(record,))
        done = replace(first, status=TaskStatus.COMPLETED, result_text=text, result_data={"amount": 99.0})
        freed = replace(second, status=TaskStatus.OPEN, opened_ms=now, inputs={"amount": 99.0})
        ended = replace(state.attempts[0], status=AttemptStatus.SUCCEEDED, finished_ms=now)
        return Step(
            state=replace(state, tasks=(done, freed), attempts=(ended, attempt_of(freed, 1, now))),
            results=(record,),
            decisions=(replace(decision_of(state.request.request_id), position=1),),
        )

    return decide


def finish(*, days_ago: float = 0) -> Decide:
    """A rule that ends a request as if it had ended earlier."""

    def decide(state: RequestState, now: int) -> Step:
        request = replace(
            state.request,
            status=RequestStatus.COMPLETED,
            answer="done",
            finished_ms=now - round(days_ago * DAY_MS),
        )
        return Step(state=replace(state, request=request))

    return decide


def with_attempt(**changes: object) -> Decide:
    """A rule that changes the first attempt."""

    def decide(state: RequestState, _now: int) -> Step:
        first, *others = state.attempts
        return Step(state=replace(state, attempts=(replace(first, **changes), *others)))  # type: ignore[arg-type]

    return decide


@asynccontextmanager
async def replica(url: str, clock: Clock | None = None) -> AsyncIterator[SqlLedger]:
    """A ledger with connections of its own, as another process would have."""
    async with open_engine(url) as database:
        ledger = SqlLedger(database, clock=clock or SystemClock())
        async with ledger.running():
            yield ledger


def claimed(offer: Offer, *, by: ReplicaId = REPLICA, for_ms: int = HOUR_MS) -> Offer:
    """The offer with its attempts claimed from the start, as those that are published at once."""

    def build(now: int) -> Step:
        step = offer.build(now)
        attempts = tuple(
            replace(one, claimed_by=by, claimed_until_ms=now + for_ms) for one in step.state.attempts
        )
        return replace(step, state=replace(step.state, attempts=attempts))

    return replace(offer, build=build)
