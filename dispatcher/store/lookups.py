"""What dispatch asks of the whole ledger: what is overdue, how much is open, how attempts ended."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Double,
    Select,
    and_,
    bindparam,
    cast,
    func,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)

from dispatcher.dispatch.lifecycle.ledger import KeyedRequest, OutcomeCount
from dispatcher.dispatch.lifecycle.request import (
    NOT_REACHED,
    Attempt,
    AttemptStatus,
    DecisionRecord,
    PartialRecord,
    RequestStatus,
    TaskStatus,
)
from dispatcher.identifiers import AgentId, CallerId, RequestId, TaskId
from dispatcher.store import rows
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.states import padded
from dispatcher.store.tables import attempts, decisions, partials, requests, tasks


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


def _by_agent(*conditions: ColumnElement[bool]) -> CompoundSelect[str, int]:
    """The number of attempts per agent, over disjoint conditions; one part each, for its own index."""
    return union_all(
        *(
            select(attempts.c.agent_id, func.count()).where(condition).group_by(attempts.c.agent_id)
            for condition in conditions
        )
    )


_OPEN_BY_AGENT = _by_agent(_DUE, _PUBLISHED)
_SENT_BY_AGENT = _by_agent(and_(_DUE, attempts.c.claimed_until_ms > now_ms()), _PUBLISHED)
_OUTCOME_MEMORY_MS = 24 * 3600 * 1000
_SUCCESS = attempts.c.status == AttemptStatus.SUCCEEDED
_FAILURE = or_(
    attempts.c.status.in_((AttemptStatus.FAILED, AttemptStatus.LAPSED)),
    and_(attempts.c.status == AttemptStatus.NOT_STARTED, attempts.c.error_code.in_(NOT_REACHED)),
)
"""NOT_STARTED for other reasons and ABANDONED say nothing about how well an agent does its work."""


async def read_decisions(database: Database, request_id: RequestId) -> tuple[DecisionRecord, ...]:
    """See `Ledger.read_decisions`."""
    query = select(decisions).where(decisions.c.request_id == request_id).order_by(*decisions.primary_key)
    async with database.reading() as connection:
        return tuple(rows.to_decision(row) for row in (await connection.execute(query)).mappings())


async def read_partials(
    database: Database, task: tuple[RequestId, TaskId], start: tuple[int, int], limit: int
) -> tuple[PartialRecord, ...]:
    """See `Ledger.read_partials`."""
    attempt, sequence = start
    query = (
        select(partials)
        .where(partials.c.request_id == task[0], partials.c.task_id == task[1])
        .where(tuple_(partials.c.attempt, partials.c.sequence) >= tuple_(attempt, sequence))
        .order_by(partials.c.attempt, partials.c.sequence)
        .limit(limit)
    )
    async with database.reading() as connection:
        return tuple(rows.to_partial(row) for row in (await connection.execute(query)).mappings())


async def find_by_keys(database: Database, keys: Sequence[CallerKey]) -> list[KeyedRequest | None]:
    """See `Ledger.find_by_key`; one query for all, one answer for each."""
    wanted: dict[str, Sequence[object]] = {"pairs": padded(keys)}
    if not database.is_postgres:
        wanted["callers"] = padded(key.caller for key in keys)
        wanted["keys"] = padded(key.idempotency_key for key in keys)
    query = _BY_PAIRS if database.is_postgres else _BY_PAIRS_ON_SQLITE
    async with database.asking() as connection:
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
    async with database.asking() as connection:
        found = await connection.execute(_overdue(limit))
        return tuple(RequestId(request_id) for request_id in found.scalars())


@cache
def _overdue(limit: int) -> Select[str]:
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
    return (
        select(late.c.request_id)
        .group_by(late.c.request_id)
        .order_by(func.min(late.c.since), late.c.request_id)
        .limit(limit)
    )


async def open_attempts(database: Database) -> Mapping[AgentId, int]:
    """See `Ledger.open_attempts`."""
    return await _count(database, _OPEN_BY_AGENT)


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
    return await _count(database, _SENT_BY_AGENT)


async def _count(database: Database, query: CompoundSelect[str, int]) -> Mapping[AgentId, int]:
    counts: Counter[AgentId] = Counter()
    async with database.asking() as connection:
        for agent_id, number in await connection.execute(query):
            counts[AgentId(agent_id)] += number
    return counts


async def outcome_counts(database: Database, half_life_s: float) -> tuple[OutcomeCount, ...]:
    """See `Ledger.outcome_counts`. What failed, lapsed or could not reach its agent counts as a failure."""
    halvings = cast(now_ms() - attempts.c.finished_ms, Double) / (half_life_s * 1000.0)
    weight = func.power(0.5, halvings)

    def weighed(kind: ColumnElement[bool]) -> ColumnElement[float]:
        return func.coalesce(func.sum(weight).filter(kind), 0.0)

    query = (
        select(
            attempts.c.agent_id,
            tasks.c.capability,
            weighed(_SUCCESS).label("succeeded"),
            weighed(_FAILURE).label("failed"),
        )
        .join(tasks, and_(tasks.c.request_id == attempts.c.request_id, tasks.c.task_id == attempts.c.task_id))
        .where(attempts.c.finished_ms > now_ms() - _OUTCOME_MEMORY_MS, tasks.c.capability.is_not(None))
        .where(or_(_SUCCESS, _FAILURE))
        .group_by(attempts.c.agent_id, tasks.c.capability)
        .order_by(attempts.c.agent_id, tasks.c.capability)
    )
    async with database.reading() as connection:
        return tuple(OutcomeCount(**row) for row in (await connection.execute(query)).mappings())
