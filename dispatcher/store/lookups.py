"""What dispatch asks of the whole ledger: what is overdue, how much is open, how attempts ended."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    and_,
    bindparam,
    cast,
    func,
    literal,
    select,
    tuple_,
    union_all,
)

from dispatcher.dispatch.ledger import KeyedRequest, OutcomeCount
from dispatcher.dispatch.request import Attempt, AttemptStatus, DecisionRecord, RequestStatus, TaskStatus
from dispatcher.identifiers import AgentId, CallerId, RequestId
from dispatcher.store import rows
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.states import padded
from dispatcher.store.tables import attempts, decisions, requests, tasks


class CallerKey(NamedTuple):
    """An idempotency key belongs to one caller."""

    caller: CallerId
    idempotency_key: str


_BY_PAIRS = select(
    requests.c.caller, requests.c.idempotency_key, requests.c.request_id, requests.c.body_digest
).where(tuple_(requests.c.caller, requests.c.idempotency_key).in_(bindparam("pairs", expanding=True)))
_BY_PAIRS_ON_SQLITE = _BY_PAIRS.where(
    requests.c.caller.in_(bindparam("callers", expanding=True)),
    requests.c.idempotency_key.in_(bindparam("keys", expanding=True)),
)
"""SQLite uses no index for pairs, but one for their halves."""
_DUE = attempts.c.status == AttemptStatus.DUE
_PUBLISHED = attempts.c.status == AttemptStatus.PUBLISHED
_OUTCOME_MEMORY_MS = 24 * 3600 * 1000
_FAILURES = (AttemptStatus.FAILED, AttemptStatus.LAPSED)
"""NOT_STARTED and ABANDONED say nothing about how well an agent does its work."""


async def read_decisions(database: Database, request_id: RequestId) -> tuple[DecisionRecord, ...]:
    """See `Ledger.read_decisions`."""
    query = select(decisions).where(decisions.c.request_id == request_id).order_by(*decisions.primary_key)
    async with database.reading() as connection:
        return tuple(rows.to_decision(row) for row in (await connection.execute(query)).mappings())


async def find_by_keys(database: Database, keys: Sequence[CallerKey]) -> list[KeyedRequest | None]:
    """See `Ledger.find_by_key`; one query for all, one answer for each."""
    wanted: dict[str, Sequence[object]] = {"pairs": padded(keys)}
    if not database.is_postgres:
        wanted["callers"] = padded(key.caller for key in keys)
        wanted["keys"] = padded(key.idempotency_key for key in keys)
    query = _BY_PAIRS if database.is_postgres else _BY_PAIRS_ON_SQLITE
    async with database.reading() as connection:
        found = (await connection.execute(query, wanted)).all()
    known = {
        CallerKey(row.caller, row.idempotency_key): KeyedRequest(
            request_id=row.request_id, body_digest=row.body_digest
        )
        for row in found
    }
    return [known.get(key) for key in keys]


async def overdue(database: Database, limit: int) -> tuple[RequestId, ...]:
    """See `Ledger.overdue`; those that are overdue longest come first."""
    is_open = requests.c.status == RequestStatus.OPEN
    late_requests = select(requests.c.request_id, requests.c.deadline_ms.label("since")).where(is_open)
    late_attempts = (
        select(attempts.c.request_id, attempts.c.lapse_ms.label("since"))
        .join(requests, requests.c.request_id == attempts.c.request_id)
        .where(is_open, _PUBLISHED)
    )
    late_tasks = (
        select(tasks.c.request_id, tasks.c.deadline_ms.label("since"))
        .join(requests, requests.c.request_id == tasks.c.request_id)
        .where(is_open, tasks.c.status.in_((TaskStatus.WAITING, TaskStatus.OPEN)))
    )
    late = union_all(
        late_requests.where(requests.c.deadline_ms <= now_ms()),
        late_attempts.where(attempts.c.lapse_ms <= now_ms()),
        late_tasks.where(tasks.c.deadline_ms <= now_ms()),
    ).subquery("late")
    query = (
        select(late.c.request_id)
        .group_by(late.c.request_id)
        .order_by(func.min(late.c.since), late.c.request_id)
        .limit(limit)
    )
    async with database.reading() as connection:
        return tuple(RequestId(request_id) for request_id in (await connection.execute(query)).scalars())


async def open_attempts(database: Database) -> Mapping[AgentId, int]:
    """See `Ledger.open_attempts`."""
    return await _count_by_agent(database, _DUE, _PUBLISHED)


async def unanswered(
    database: Database, agents: Collection[AgentId], age_s: float, limit: int
) -> Sequence[Attempt]:
    """Attempts confirmed long ago without a result; see `Ledger.unanswered`."""
    before = now_ms() - literal(round(age_s * 1000), BigInteger)
    query = (
        select(attempts)
        .where(_PUBLISHED, attempts.c.agent_id.in_(agents), attempts.c.published_ms <= before)
        .order_by(attempts.c.published_ms, attempts.c.task_id)
        .limit(limit)
    )
    async with database.reading() as connection:
        return tuple(map(rows.to_attempt, (await connection.execute(query)).mappings()))


async def published_attempts(database: Database) -> Mapping[AgentId, int]:
    """See `Ledger.published_attempts`."""
    return await _count_by_agent(database, and_(_DUE, attempts.c.claimed_until_ms > now_ms()), _PUBLISHED)


async def _count_by_agent(database: Database, *conditions: ColumnElement[bool]) -> Mapping[AgentId, int]:
    """The number of attempts per agent, over disjoint conditions; one query each, for its own index."""
    counts: Counter[AgentId] = Counter()
    async with database.reading() as connection:
        for condition in conditions:
            query = select(attempts.c.agent_id, func.count()).where(condition).group_by(attempts.c.agent_id)
            for agent_id, number in await connection.execute(query):
                counts[AgentId(agent_id)] += number
    return counts


async def outcome_counts(database: Database, half_life_s: float) -> tuple[OutcomeCount, ...]:
    """See `Ledger.outcome_counts`. Failed and lapsed attempts count as failures."""
    halvings = cast(now_ms() - attempts.c.finished_ms, Double) / (half_life_s * 1000.0)
    weight = func.power(0.5, halvings)

    def weighed(*statuses: AttemptStatus) -> ColumnElement[float]:
        return func.coalesce(func.sum(weight).filter(attempts.c.status.in_(statuses)), 0.0)

    query = (
        select(
            attempts.c.agent_id,
            tasks.c.capability,
            weighed(AttemptStatus.SUCCEEDED).label("succeeded"),
            weighed(*_FAILURES).label("failed"),
        )
        .join(tasks, and_(tasks.c.request_id == attempts.c.request_id, tasks.c.task_id == attempts.c.task_id))
        .where(attempts.c.finished_ms > now_ms() - _OUTCOME_MEMORY_MS, tasks.c.capability.is_not(None))
        .where(attempts.c.status.in_((AttemptStatus.SUCCEEDED, *_FAILURES)))
        .group_by(attempts.c.agent_id, tasks.c.capability)
        .order_by(attempts.c.agent_id, tasks.c.capability)
    )
    async with database.reading() as connection:
        return tuple(OutcomeCount(**row) for row in (await connection.execute(query)).mappings())
