"""The transaction that accepts a group of new requests."""

from collections.abc import Sequence

from sqlalchemy import and_, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.ledger import Change, KeyedRequest, Offer, Step
from dispatcher.identifiers import RequestId
from dispatcher.store import rows
from dispatcher.store.changes import ChangeSet
from dispatcher.store.column import read_now
from dispatcher.store.engine import Database
from dispatcher.store.failure import ConflictError
from dispatcher.store.tables import requests

Name = tuple[str, str]
"""What an offer is known by: its caller and key where it has a key, else ("", request id)."""

_INSERT_ON_POSTGRES = postgresql.insert(requests).on_conflict_do_nothing().returning(requests.c.request_id)
_INSERT_ON_SQLITE = sqlite.insert(requests).on_conflict_do_nothing().returning(requests.c.request_id)


async def accept_group(database: Database, offers: Sequence[Offer]) -> list[Change | KeyedRequest]:
    """One answer per offer, committed: its change, or the request that already has its name.

    The first offer of a name wins, within the group as in the whole ledger.
    """
    firsts: dict[Name, Offer] = {}
    for offer in offers:
        firsts.setdefault(_name(offer), offer)
    # In key order: another replica's group with the same keys waits for this one, never across it.
    ordered = [firsts[name] for name in sorted(firsts)]
    async with database.writing() as connection:
        now = await read_now(connection)
        steps = {offer.request_id: offer.build(now) for offer in ordered}
        inserted = await _insert_requests(connection, database, steps)
        known = await _find(connection, [offer for offer in ordered if offer.request_id not in inserted])
        changes = ChangeSet(now)
        for request_id in inserted:
            changes.add_new(steps[request_id].state)
            changes.add_records(steps[request_id])
        await changes.write(connection)

    def answer(offer: Offer) -> Change | KeyedRequest:
        first = firsts[_name(offer)]
        if first.request_id not in inserted:
            return known[_name(offer)]
        if first is offer:
            return Change(before=None, after=steps[offer.request_id].state, now_ms=now)
        return KeyedRequest(request_id=first.request_id, body_digest=first.body_digest)

    return [answer(offer) for offer in offers]


def _name(offer: Offer) -> Name:
    if offer.idempotency_key is None:
        return ("", offer.request_id)
    return (offer.caller, offer.idempotency_key)


async def _insert_requests(
    connection: AsyncConnection, database: Database, steps: dict[RequestId, Step]
) -> set[RequestId]:
    """Insert the requests whose key and id are free; the ids of those."""
    values = [rows.request_row(step.state.request) for step in steps.values()]
    insert = _INSERT_ON_POSTGRES if database.is_postgres else _INSERT_ON_SQLITE
    return set((await connection.execute(insert, values)).scalars())


async def _find(connection: AsyncConnection, offers: Sequence[Offer]) -> dict[Name, KeyedRequest]:
    """The committed requests that have these offers' names."""
    found: dict[Name, KeyedRequest] = {}
    for offer in offers:
        query = select(requests.c.request_id, requests.c.body_digest).where(
            or_(
                requests.c.request_id == offer.request_id,
                and_(requests.c.caller == offer.caller, requests.c.idempotency_key == offer.idempotency_key),
            )
        )
        row = (await connection.execute(query)).first()
        if row is None:
            # Deleted between the two statements: the next try inserts.
            raise ConflictError("a request with that key was just removed")
        found[_name(offer)] = KeyedRequest(request_id=row.request_id, body_digest=row.body_digest)
    return found
