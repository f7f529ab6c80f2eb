"""`python -m tests.services -- COMMAND...` runs a command beside a private broker and database.

Both are started in parallel on free loopback ports in a temporary folder, their addresses are
given to the command in ARD_TEST_RABBITMQ and ARD_TEST_POSTGRES, and they are stopped when it
ends, also on SIGINT and SIGTERM. An address that is already set is used as it is. What is not
installed is named; in CI that is an error (exit status 2), elsewhere the tests skip.
"""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.services import postgres, rabbitmq
from tests.services.environment import POSTGRES, RABBITMQ, is_ci, variable, variables
from tests.services.postgres import PostgresServer
from tests.services.process import ServiceError
from tests.services.rabbitmq import RabbitNode

USAGE = "usage: python -m tests.services -- COMMAND [ARGUMENT...]"
_GRACE_S = 15.0


class InterruptedBySignalError(Exception):
    """A signal asked us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One service: the variable its address goes to, what is missing for it, and how to make it."""

    variable: str
    missing: Callable[[], str | None]
    make: Callable[[Path], RabbitNode | PostgresServer]


KINDS = (
    Kind(variable=RABBITMQ, missing=rabbitmq.missing, make=RabbitNode),
    Kind(variable=POSTGRES, missing=postgres.missing, make=PostgresServer),
)


@contextmanager
def running(kinds: Sequence[Kind]) -> Iterator[dict[str, str]]:
    """Start the services at the same time; yields their addresses by variable, then stops them."""
    with ExitStack() as cleanup:
        root = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="ard-services-")))
        root.chmod(0o711)
        services = {kind.variable: kind.make(root / kind.variable.lower()) for kind in kinds}
        pool = cleanup.enter_context(ThreadPoolExecutor(max_workers=len(KINDS)))
        cleanup.callback(_quietly_stop, list(services.values()), pool)
        for started in [pool.submit(service.start) for service in services.values()]:
            started.result()
        yield {name: service.url for name, service in services.items()}


def _quietly_stop(services: Sequence[RabbitNode | PostgresServer], pool: ThreadPoolExecutor) -> None:
    """Runs to its end whatever signals come: a service left behind would outlive the tests."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    pool.shutdown(wait=True)
    with ThreadPoolExecutor(max_workers=len(KINDS)) as stopping:
        list(stopping.map(lambda service: service.close(), services))


def run_command(command: Sequence[str], addresses: dict[str, str]) -> int:
    """Run the command to its end; a signal ends it first (Ctrl-C in a terminal reaches it by itself)."""
    with subprocess.Popen(command, env=variables() | addresses) as process:
        try:
            return process.wait()
        except InterruptedBySignalError as error:
            _end(process, error.number)
            return 128 + error.number


def _end(process: subprocess.Popen[bytes], number: int) -> None:
    for how in (None if number == signal.SIGINT else signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if how is not None:
            process.send_signal(how)
        try:
            process.wait(_GRACE_S)
        except (subprocess.TimeoutExpired, InterruptedBySignalError):
            continue
        return


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise InterruptedBySignalError(number)


def main(arguments: Sequence[str]) -> int:
    """The command's exit status; 2 for wrong use or, in CI, for a service that is not installed."""
    command = list(arguments[1:]) if arguments[:1] == ["--"] else list(arguments)
    if not command:
        print(USAGE, file=sys.stderr)
        return 2
    wanted = [kind for kind in KINDS if variable(kind.variable) is None]
    problems = [problem for kind in wanted if (problem := kind.missing())]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems and is_ci():
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with running([kind for kind in wanted if kind.missing() is None]) as addresses:
            return run_command(command, addresses)
    except InterruptedBySignalError as error:
        return 128 + error.number
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
