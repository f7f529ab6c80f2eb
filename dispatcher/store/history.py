"""What was decided, for people who look back: decisions with their texts and what was said about them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, select, tuple_

from dispatcher.dispatch.lifecycle.judgement import Verdict
from dispatcher.identifiers import CallerId, Capability, RequestId
from dispatcher.routing.decision import Decision
from dispatcher.routing.record import read_decision
from dispatcher.store.engine import Database
from dispatcher.store.tables import decisions, feedback, requests, tasks

PAGE = 1_000
"""Decisions read at a time; each is up to some 30 KB."""
_ORDER = (decisions.c.request_id, decisions.c.position, decisions.c.number)


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
    database: Database, since_ms: int, until_ms: int, *, first_only: bool = True
) -> AsyncIterator[Past]:
    """Decisions recorded from `since_ms` on and before `until_ms`, by request; `first_only` without retries.

    Read in pages, so that any number of them fits in memory one page at a time.
    """
    within = and_(decisions.c.recorded_ms >= since_ms, decisions.c.recorded_ms < until_ms)
    chosen = and_(within, decisions.c.number == 1) if first_only else within
    after: tuple[Any, ...] = ("", -1, -1)
    while True:
        async with database.reading() as connection:
            page = (await connection.execute(_page(chosen, after))).mappings().all()
        for row in page:
            yield _to_past(row)
        if len(page) < PAGE:
            return
        after = tuple(page[-1][column.name] for column in _ORDER)


def _page(chosen: ColumnElement[bool], after: tuple[Any, ...]) -> Select[Any]:
    own = and_(tasks.c.request_id == decisions.c.request_id, tasks.c.position == decisions.c.position)
    said = and_(feedback.c.request_id == decisions.c.request_id, feedback.c.position == decisions.c.position)
    return (
        select(
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
        .join(requests, requests.c.request_id == decisions.c.request_id)
        .outerjoin(tasks, own)
        .outerjoin(feedback, said)
        .where(chosen, tuple_(*_ORDER) > after)
        .order_by(*_ORDER)
        .limit(PAGE)
    )


def _to_past(row: Any) -> Past:  # noqa: ANN401  (a row of the query above)
    fields = {name: value for name, value in row.items() if name != "document"}
    verdict = fields["verdict"]
    return Past(
        **fields | {"verdict": None if verdict is None else Verdict(verdict)},
        decision=read_decision(row["document"]),
    )
