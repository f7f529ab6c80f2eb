"""How many attempts an agent was sent lately, over all replicas; what its `max_qps` is kept by."""

import math

from sqlalchemy import BigInteger, and_, func, literal, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.request import AttemptStatus
from dispatcher.identifiers import AgentId
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import attempts

_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('pace'), hashtext(:agent_id))")


async def left_now(database: Database, connection: AsyncConnection, agent_id: AgentId, pace: float) -> int:
    """How many more may be sent to the agent at this moment, at `pace` per second.

    Below one per second it is one per 1 / `pace` seconds. The transaction holds the agent's pace
    until it ends, so that two replicas can't both use what is left.
    """
    if database.is_postgres:
        await connection.execute(_LOCK, {"agent_id": agent_id})
    window_s = max(1.0, 1 / pace)
    return max(0, math.floor(pace * window_s + 1e-9) - await _sent_within(connection, agent_id, window_s))


async def _sent_within(connection: AsyncConnection, agent_id: AgentId, seconds: float) -> int:
    """Attempts published or claimed for it within so many seconds."""
    since = now_ms() - literal(round(seconds * 1000), BigInteger)
    claimed = and_(attempts.c.status == AttemptStatus.DUE, attempts.c.claimed_until_ms > now_ms())
    # What was published within the time is still open, or ended within it: both have an index.
    recent = or_(
        claimed,
        and_(attempts.c.status == AttemptStatus.PUBLISHED, attempts.c.published_ms > since),
        and_(attempts.c.finished_ms > since, attempts.c.published_ms > since),
    )
    query = select(func.count()).select_from(attempts).where(attempts.c.agent_id == agent_id, recent)
    sent: int = (await connection.execute(query)).scalar_one()
    return sent
