"""The outside of a process of the benchmark: start it, order it about, end it."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from dispatcher.errors import UnavailableError

READY_S = 60.0
_STOP_S = 15.0
_TOLD = 2_000
"""How much of a failed process's log is repeated."""


class Child:
    """One running process of this Python, its standard error in a log file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Of the process itself; it is no shell."""
        return self._process.pid

    async def ask(self, order: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Give an order and return the reply; raises UnavailableError when none comes in time."""
        assert self._process.stdin is not None  # noqa: S101 - it was started with a pipe
        with suppress(ConnectionError):
            self._process.stdin.write(orjson.dumps(order) + b"\n")
        reply: dict[str, Any] = orjson.loads(await self._line(seconds))
        return reply

    async def wait_for(self, pattern: str, seconds: float = READY_S) -> re.Match[str]:
        """The next line on standard output that matches."""
        while True:
            found = re.search(pattern, (await self._line(seconds)).decode())
            if found:
                return found

    async def ended(self, seconds: float) -> None:
        """Wait until it ends by itself; raises UnavailableError where it fails or does not end."""
        try:
            async with asyncio.timeout(seconds):
                code = await self._process.wait()
        except TimeoutError:
            raise self._failure("did not end") from None
        if code:
            raise self._failure(f"ended with {code}")

    async def stop(self) -> None:
        """End it: with its input and SIGTERM, by force when that does not help."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _line(self, seconds: float) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - it was started with a pipe
        try:
            async with asyncio.timeout(seconds):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise self._failure(f"said nothing for {seconds:g} s") from None
        if not line:
            raise self._failure("ended too early")
        return line

    def _failure(self, what: str) -> UnavailableError:
        said = self._log.read_text(encoding="utf-8", errors="replace").strip()[-_TOLD:]
        return UnavailableError(f"the {self.name} process {what}" + (f":\n{said}" if said else ""))


@asynccontextmanager
async def running(name: str, folder: Path, *arguments: str) -> AsyncIterator[Child]:
    """`python ARGUMENTS` until the block ends, with its log in `folder`.

    It gets our import path and nothing else of our environment: no setting of the caller's may
    change what is measured.
    """
    log = folder / f"{name}.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    child = Child(name, process, log)
    try:
        yield child
    finally:
        await asyncio.shield(child.stop())
