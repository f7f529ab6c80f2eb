"""The rows of the fault matrix that are run: by number, those that break a service last."""

import re

from tests.faults import (
    agents_http,
    broker,
    clocks,
    database,
    deliveries,
    embedded,
    embedded_store,
    flood,
    kills,
    ledger,
    processes,
    transport,
)
from tests.faults.row import OwnRow, Row

MODULES = (
    *(kills, processes, broker, transport, deliveries, ledger, database, clocks),
    *(agents_http, embedded, embedded_store, flood),
)


def _place(row: Row | OwnRow) -> tuple[bool, int, str]:
    number = re.match(r"\d+", row.numbers)
    return row.alone, int(number.group()) if number else 0, row.numbers


ROWS: tuple[Row | OwnRow, ...] = tuple(sorted((row for module in MODULES for row in module.ROWS), key=_place))
