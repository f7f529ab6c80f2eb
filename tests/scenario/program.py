"""Real processes of the product, started and ended by a test."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


class Program:
    """One running command; everything it prints is kept.

    Its environment is this one's without the product's settings, plus `variables`.
    """

    def __init__(
        self, *command: str, folder: Path = ROOT, variables: Mapping[str, str] | None = None
    ) -> None:
        self.command = command
        self.output: list[str] = []
        self._printed = threading.Condition()
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._printed:
                self.output.append(line.rstrip("\n"))
                self._printed.notify_all()
        with self._printed:
            self._printed.notify_all()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process runs no longer."""
        return self._process.poll() is not None

    @property
    def text(self) -> str:
        """Everything printed so far."""
        return "\n".join(self.output)

    def wait_for(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        """The first line that matches; fails when the process ends or time is up."""
        with self._printed:
            self._printed.wait_for(lambda: self._match(pattern) or not self._reader.is_alive(), seconds)
        found = self._match(pattern)
        assert found, f"no line matches {pattern!r} in:\n{self.text}"
        return found

    def _match(self, pattern: str) -> re.Match[str] | None:
        return next((m for line in self.output if (m := re.search(pattern, line))), None)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self, seconds: float = 60) -> int:
        """The exit code."""
        code = self._process.wait(seconds)
        self._reader.join(5)
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 45) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.send(number)
        return self.wait(seconds)

    def close(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(5)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings of the product, with the test's own Python first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DISPATCHER_")}
    path = f"{BIN}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "PYTHONUNBUFFERED": "1", "COLUMNS": "200", **variables}


def run(
    *command: str,
    folder: Path = ROOT,
    variables: Mapping[str, str] | None = None,
    seconds: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, or end it and all that it started after `seconds`."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(variables or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def dispatcher(*arguments: str) -> Sequence[str]:
    """The command line of the `dispatcher` command in this environment."""
    return (str(BIN / "dispatcher"), *arguments)
