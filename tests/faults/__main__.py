"""`python -m tests.faults [ROW ...]`: the fault matrix on a private RabbitMQ node and PostgreSQL server.

Rows are numbers of the matrix; without any, all are run. Prints a table and, last, one JSON line.
The exit status is 0 only if every row passed.
"""

import asyncio
import json
import math
import signal
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from dispatcher.clock import SystemClock
from tests.faults.history import counts
from tests.faults.matrix import ROWS
from tests.faults.row import OwnRow, Row
from tests.faults.trial import Report, conclude, open_trial
from tests.services import postgres, rabbitmq
from tests.services.postgres import PostgresServer
from tests.services.rabbitmq import RabbitNode

AT_ONCE = 2
"""Rows mostly wait; more than this many would wait for the processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One row's report, or why there is none; what failed in the row's own words."""

    row: Row | OwnRow
    report: Report | None
    failures: Sequence[str]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What rows may kill."""

    node: RabbitNode
    server: PostgresServer


@asynccontextmanager
async def running_services(folder: Path) -> AsyncIterator[Services]:
    """A broker and a database of our own, stopped at the end."""
    services = Services(node=RabbitNode(folder / "broker"), server=PostgresServer(folder / "database"))
    both = (services.node, services.server)
    try:
        await asyncio.gather(*(asyncio.to_thread(service.start) for service in both))
        yield services
    finally:
        await asyncio.gather(*(asyncio.to_thread(service.close) for service in both))


async def run_row(row: Row | OwnRow, folder: Path, services: Services) -> Outcome:
    """Break one thing, drain and judge; a failing row does not stop the others."""
    clock = SystemClock()
    began, failures, report = clock.monotonic(), list[str](), None
    try:
        if isinstance(row, OwnRow):
            report = await row.run(folder)
        else:
            report = await _try_row(row, folder, services, failures)
    except Exception as error:  # noqa: BLE001 - one row's accident is its failure
        traceback.print_exc()
        failures.append(_first_line(error))
    if report is not None:
        failures += [f"{v.kind}: {v.subject}: {v.detail}" for v in report.verdict.violations]
        failures += report.problems
    return Outcome(row=row, report=report, failures=failures, seconds=clock.monotonic() - began)


async def _try_row(row: Row, folder: Path, services: Services, failures: list[str]) -> Report:
    """The row's fault on the services, which run again afterwards; what it missed is added to `failures`."""
    try:
        async with open_trial(folder, services.node, services.server, row.settings) as trial:
            try:
                await row.fault(trial)
            except* AssertionError as error:
                failures.append(_first_line(error))
            return await conclude(trial)
    finally:
        await asyncio.gather(*(asyncio.to_thread(s.start) for s in (services.node, services.server)))


def _first_line(error: BaseException) -> str:
    """What was raised and where: a bare assertion says nothing else."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error}"[:600] + f" [{where.name}:{where.lineno}: {where.line}]"


def print_row(outcome: Outcome) -> None:
    """One line of the table, and what failed below it."""
    report = outcome.report
    facts = "no report"
    if report is not None:
        verdict = report.verdict
        facts = (
            f"{verdict.accepted:5} {verdict.terminal:5} {verdict.completed:5} {verdict.reruns:5} "
            f"{_p95(report.recovery_s):6.2f}"
        )
    passed = "ok  " if not outcome.failures else "FAIL"
    print(
        f"{outcome.row.numbers:7} {passed} {facts} {outcome.seconds:5.0f} s  {outcome.row.title}", flush=True
    )
    if report is not None and report.endings.keys() - {"completed"}:
        print(f"        {dict(report.endings)}", flush=True)
    for failure in outcome.failures[:8]:
        print(f"        {failure}", flush=True)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1] if values else 0.0


def summary(outcomes: Sequence[Outcome]) -> Mapping[str, object]:
    """The JSON line."""
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    recovery = [seconds for report in reports for seconds in report.recovery_s]
    return {
        "rows": len(outcomes),
        "passed": sum(not outcome.failures for outcome in outcomes),
        **counts(report.verdict for report in reports),
        "recovery_p95_s": round(_p95(recovery), 3),
        "failed": [outcome.row.numbers for outcome in outcomes if outcome.failures],
    }


def _opened(folder: Path) -> Path:
    """The folder, made where it is missing; PostgreSQL's own account must be able to pass through it."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    return folder


async def run_rows(rows: Sequence[Row | OwnRow], folder: Path) -> Sequence[Outcome]:
    """All rows, a few at a time; then those that break a service, one by one."""
    places = asyncio.Semaphore(AT_ONCE)

    async def run(row: Row | OwnRow) -> Outcome:
        async with places:
            outcome = await run_row(row, _opened(folder / row.numbers.replace("/", "-")), services)
        print_row(outcome)
        return outcome

    async with running_services(folder) as services:
        together = await asyncio.gather(*(run(row) for row in rows if not row.alone))
        return [*together, *[await run(row) for row in rows if row.alone]]


async def main(wanted: Sequence[str]) -> int:
    """The exit status."""
    known = {number for row in ROWS for number in row.numbers.split("/")}
    unknown = [number for number in wanted if number not in known]
    missing = [problem for problem in (rabbitmq.missing(), postgres.missing()) if problem]
    for problem in (*(f"there is no row {number}" for number in unknown), *missing):
        print(problem, file=sys.stderr)
    if unknown or missing:
        return 2
    rows = [row for row in ROWS if not wanted or set(wanted) & set(row.numbers.split("/"))]
    print("row          accepted ended completed rerun recovery_p95_s", flush=True)
    with tempfile.TemporaryDirectory(prefix="ard-faults-") as name:
        outcomes = await run_rows(rows, _opened(Path(name)))
    print(json.dumps(summary(outcomes)))
    return 0 if all(not outcome.failures for outcome in outcomes) else 1


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    """End as by Ctrl-C: what was started is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(asyncio.run(main(sys.argv[1:])))
