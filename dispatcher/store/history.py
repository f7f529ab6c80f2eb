"""What was decided, for people who look back: decisions with their texts and what was said about them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, select, text, tuple_

from dispatcher.dispatch.lifecycle.judgement import Verdict
from dispatcher.identifiers import CallerId, Capability, RequestId
from dispatcher.routing.decision import Decision
from dispatcher.routing.record import read_decision
from dispatcher.store.engine import Database
from dispatcher.store.tables import decisions, feedback, requests, tasks

PAGE = 1_000
"""Decisions read at a time; each is up to some 30 KB."""
_ORDER = (decisions.c.request_id, decisions.c.position, decisions.c.number)
_ORDER_JUDGED = (feedback.c.recorded_ms, feedback.c.request_id, feedback.c.position)
_OWN_TASK = and_(tasks.c.request_id == decisions.c.request_id, tasks.c.position == decisions.c.position)
_SAID = and_(feedback.c.request_id == decisions.c.request_id, feedback.c.position == decisions.c.position)
_LEAST_ID = func.min(requests.c.request_id.concat(""))
"""Concatenated, so that no planner takes it for the first row in the order of the ids, 90 days too early."""
_FIELDS = (
    *_ORDER,
    decisions.c.caller,
    decisions.c.document,
    decisions.c.recorded_ms,
    requests.c.language,
    requests.c.environment,
    tasks.c.status,
    feedback.c.verdict,
    feedback.c.capability.label("right_capability"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One decision, its request, how its task ended and what was said of it; times in ms since the epoch.

    `number` counts the attempt it was made for, from 1. `status` is None where nothing was given out.
    """

    request_id: RequestId
    position: int
    number: int
    caller: CallerId
    language: str
    environment: str
    recorded_ms: int
    decision: Decision
    status: str | None
    verdict: Verdict | None
    right_capability: Capability | None
    """As somebody said; None where nobody did."""


async def past_decisions(
    database: Database, since_ms: int, until_ms: int, *, first_only: bool = True, page: int = PAGE
) -> AsyncIterator[Past]:
    """Decisions recorded from `since_ms` on and before `until_ms`, by request; `first_only` without retries.

    Read in pages, so that any number of them fits in memory one page at a time. Nothing older than the
    oldest request that was open at `since_ms` or later is looked at; what is younger than `until_ms` is.
    """
    least = await _least_id(database, since_ms)
    if least is None or since_ms >= until_ms:
        return
    chosen = [*_between(since_ms, until_ms), *([decisions.c.number == 1] if first_only else [])]
    query = (
        select(*_FIELDS)
        .join(requests, requests.c.request_id == decisions.c.request_id)
        .outerjoin(tasks, _OWN_TASK)
        .outerjoin(feedback, _SAID)
        .where(*chosen)
    )
    async for row in _paged(database, query, _ORDER, (least, -1, -1), page):
        yield _to_past(row)


async def judged_decisions(
    database: Database, since_ms: int, until_ms: int, *, page: int = PAGE
) -> AsyncIterator[Past]:
    """The first decision of each judged intent, recorded as above; what was said last is last.

    One that is judged again while it is read may come twice, with the later judgement last.
    """
    query = (
        select(*_FIELDS)
        .select_from(feedback)
        .join(decisions, _SAID)
        .join(requests, requests.c.request_id == decisions.c.request_id)
        .outerjoin(tasks, _OWN_TASK)
        # Nothing is judged before it is decided: the index on the time of feedback begins there.
        .where(*_between(since_ms, until_ms), decisions.c.number == 1, feedback.c.recorded_ms >= since_ms)
    )
    async for row in _paged(database, query, _ORDER_JUDGED, (since_ms, "", -1), page):
        yield _to_past(row)


async def _least_id(database: Database, since_ms: int) -> RequestId | None:
    """No decision recorded from then on is of an earlier request than this; None where there is none at all.

    Ids begin with the time by a gateway's clock, which tells nothing here: rows are chosen by the
    database's own, in an index each. Whatever was decided later, its request ended later still, or is open.
    """
    # The words of the index's own condition: no planner sees that a parameter fulfils it.
    is_open = text("requests.status = 'open'")
    chosen: tuple[Any, ...] = (requests.c.finished_ms >= since_ms, is_open)
    async with database.reading() as connection:
        least = [(await connection.execute(select(_LEAST_ID).where(one))).scalar() for one in chosen]
    return min((RequestId(one) for one in least if one is not None), default=None)


def _between(since_ms: int, until_ms: int) -> tuple[ColumnElement[bool], ...]:
    return decisions.c.recorded_ms >= since_ms, decisions.c.recorded_ms < until_ms


async def _paged(
    database: Database,
    query: Select[Any],
    order: tuple[ColumnElement[Any], ...],
    after: tuple[Any, ...],
    page: int,
) -> AsyncIterator[RowMapping]:
    """The rows of the query beyond `after` in this order."""
    keys = {f"key_{at}": column for at, column in enumerate(order)}
    labelled = (column.label(name) for name, column in keys.items())
    ordered = query.add_columns(*labelled).order_by(*order).limit(page)
    while True:
        async with database.reading() as connection:
            rows = (await connection.execute(ordered.where(tuple_(*order) > after))).mappings().all()
        for row in rows:
            yield row
        if len(rows) < page:
            return
        after = tuple(rows[-1][name] for name in keys)


def _to_past(row: RowMapping) -> Past:
    fields = {column.name: row[column.name] for column in _FIELDS if column is not decisions.c.document}
    verdict = fields["verdict"]
    return Past(
        **fields | {"verdict": None if verdict is None else Verdict(verdict)},
        decision=read_decision(row["document"]),
    )
