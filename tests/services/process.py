"""One service process in a session of its own, so that a terminal's Ctrl-C does not reach it."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

_POLL_S = 0.1


class ServiceError(Exception):
    """A service did not start or stop as it should; the message ends with the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How a service is run. `user` is the account to run as; None keeps the current one."""

    command: Sequence[str]
    folder: Path
    variables: Mapping[str, str]
    log: Path
    user: str | None = None


class ServiceProcess:
    """Starts a program, waits until it is ready, and ends it and its children."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Return when `is_ready` says so; raises ServiceError when the process ends or time is up."""
        program = self._program
        with program.log.open("ab") as log:
            self._process = subprocess.Popen(
                program.command,
                cwd=program.folder,
                env=program.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=program.user,
                group=program.user,
                extra_groups=None if program.user is None else (),
            )
        pause, deadline = Event(), time.monotonic() + timeout_s
        while not is_ready():
            if not self.is_running or time.monotonic() > deadline:
                self.kill()
                raise ServiceError(f"{program.command[0]} did not become ready\n{self._log_end()}")
            pause.wait(_POLL_S)

    def stop(self, how: signal.Signals, timeout_s: float) -> None:
        """Ask the process to end; what has not ended after `timeout_s` is killed."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        self.kill()

    def kill(self) -> None:
        """End the process and everything in its session at once, as a crash would."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def _log_end(self) -> str:
        return self._program.log.read_text(errors="replace")[-2000:]
