"""What a row of the fault matrix is. Each module of faults ends with its `ROWS`; `matrix.py` joins them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.trial import Report, Trial

Fault = Callable[[Trial], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fault of a fleet on RabbitMQ and PostgreSQL.

    `numbers` are the matrix's, joined by a slash; `settings` are the gateways' own. A row that breaks
    the broker or the database itself runs `alone`.
    """

    numbers: str
    title: str
    fault: Fault
    settings: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRow:
    """A fault that builds a world of its own in the folder it is given, and reports what it found.

    What does not hold is raised as AssertionError or stands in the report.
    """

    numbers: str
    title: str
    run: Callable[[Path], Awaitable[Report]]
    alone: bool = False


USUAL_LIVENESS = {
    "DISPATCHER_LIVENESS__HEARTBEAT_S": "5",
    "DISPATCHER_LIVENESS__SUSPECT_AFTER_S": "15",
    "DISPATCHER_LIVENESS__OFFLINE_AFTER_S": "45",
}
"""For faults that end by times which no setting makes shorter: AMQP heartbeats, pauses between connects."""
