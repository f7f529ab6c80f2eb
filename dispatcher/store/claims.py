"""The outbox: due attempts, claimed by one replica at a time."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Integer,
    RowMapping,
    Select,
    Text,
    case,
    column,
    func,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.ledger import AttemptKey, Due
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState
from dispatcher.dispatch.lifecycle.task_frame import due_of
from dispatcher.identifiers import AgentId, ReplicaId
from dispatcher.store.column import now_ms, read_now
from dispatcher.store.engine import Database
from dispatcher.store.pace import left_now
from dispatcher.store.states import load_states
from dispatcher.store.tables import attempts

_OLDEST_FIRST = (attempts.c.not_before_ms, attempts.c.request_id, attempts.c.task_id)


async def claim_due(
    database: Database,
    replica: ReplicaId,
    room: Mapping[AgentId, int],
    claim_s: float,
    paces: Mapping[AgentId, float],
) -> tuple[Due, ...]:
    """Claim due attempts in one transaction; see `Ledger.claim_due`."""
    wanted = {agent: places for agent, places in sorted(room.items()) if places > 0}
    if not wanted:
        return ()
    claim = {
        "claimed_by": replica,
        "claimed_until_ms": now_ms() + literal(round(claim_s * 1000), BigInteger),
        # Whoever claimed it before may have sent it and died before saying so.
        "published_ms": case(
            (attempts.c.claimed_by.is_not(None), func.coalesce(attempts.c.published_ms, now_ms())),
            else_=attempts.c.published_ms,
        ),
    }
    async with database.writing() as connection:
        for agent_id in sorted(wanted.keys() & paces.keys()):
            left = await left_now(database, connection, agent_id, paces[agent_id])
            wanted[agent_id] = min(wanted[agent_id], left)
        select_and_mark = _claim_skipping_locked if database.is_postgres else _claim_agent_by_agent
        claimed = await select_and_mark(connection, wanted, claim)
        if not claimed:
            return ()
        states = await load_states(connection, {row["request_id"] for row in claimed})
        now = await read_now(connection)
    ordered = sorted(claimed, key=lambda row: (row["not_before_ms"], row["request_id"], row["task_id"]))
    return tuple(
        _to_due(states[row["request_id"]].state, (row["task_id"], row["number"]), now) for row in ordered
    )


async def due_agents(database: Database) -> frozenset[AgentId]:
    """Agents with claimable attempts."""
    async with database.asking() as connection:
        found = await connection.execute(_due_agents())
        return frozenset(AgentId(agent_id) for agent_id in found.scalars())


@cache
def _due_agents() -> Select[str]:
    """Found by a jump from agent to agent, not over the backlog."""
    due = attempts.c.status == AttemptStatus.DUE
    agent = select(func.min(attempts.c.agent_id).label("agent_id")).where(due).cte("agent", recursive=True)
    following = select(func.min(attempts.c.agent_id)).where(due, attempts.c.agent_id > agent.c.agent_id)
    agent = agent.union_all(select(following.scalar_subquery()).where(agent.c.agent_id.is_not(None)))
    claimable = select(attempts.c.agent_id).where(attempts.c.agent_id == agent.c.agent_id, *_claimable())
    return select(agent.c.agent_id).where(claimable.exists())


def _claimable() -> tuple[ColumnElement[bool], ...]:
    free = or_(attempts.c.claimed_until_ms.is_(None), attempts.c.claimed_until_ms <= now_ms())
    return attempts.c.status == AttemptStatus.DUE, attempts.c.not_before_ms <= now_ms(), free


async def _claim_skipping_locked(
    connection: AsyncConnection, room: Mapping[AgentId, int], claim: Mapping[str, Any]
) -> Sequence[RowMapping]:
    wanted = (
        func.unnest(literal(list(room), ARRAY(Text)), literal(list(room.values()), ARRAY(Integer)))
        .table_valued(column("agent_id", Text), column("places", Integer))
        .render_derived(name="wanted")
    )
    free = (
        select(*attempts.primary_key)
        .where(attempts.c.agent_id == wanted.c.agent_id, *_claimable())
        .order_by(*_OLDEST_FIRST)
        .limit(wanted.c.places)
        .with_for_update(skip_locked=True)
        .lateral("free")
    )
    picked = select(free).select_from(wanted.join(free, true())).cte("picked")
    mark = (
        update(attempts)
        .where(*(key == picked.c[key.name] for key in attempts.primary_key))
        .values(**claim)
        .returning(*attempts.primary_key, attempts.c.not_before_ms)
    )
    return (await connection.execute(mark)).mappings().all()


async def _claim_agent_by_agent(
    connection: AsyncConnection, room: Mapping[AgentId, int], claim: Mapping[str, Any]
) -> Sequence[RowMapping]:
    claimed: list[RowMapping] = []
    for agent_id, places in room.items():
        free: Select[int] = (
            select(column("rowid", Integer))
            .select_from(attempts)
            .where(attempts.c.agent_id == agent_id, *_claimable())
            .order_by(*_OLDEST_FIRST)
            .limit(places)
        )
        mark = (
            update(attempts)
            .where(column("rowid").in_(free))
            .values(**claim)
            .returning(*attempts.primary_key, attempts.c.not_before_ms)
        )
        claimed.extend((await connection.execute(mark)).mappings())
    return claimed


def _to_due(state: RequestState, key: AttemptKey, now: int) -> Due:
    attempt = next(a for a in state.attempts if (a.task_id, a.number) == key)
    return due_of(state, attempt, now)
