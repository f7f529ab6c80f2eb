"""A command as it is typed, run in this process: in one of its own, importing it costs more than its work."""

import io
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

import pytest

from dispatcher.cli.app import app
from tests.scenario.program import ROOT, dispatcher, environment
from tests.services.environment import variables as surroundings


def typed(*arguments: str, variables: Mapping[str, str] | None = None) -> CompletedProcess[str]:
    """Run `dispatcher ARGUMENTS` to its end, as `tests.scenario.program.run` would; a traceback is raised.

    Not for a command that serves: it changes what belongs to the whole process.
    """
    output, errors = _stream("strict"), _stream("backslashreplace")
    with _surrounded(variables or {}), _unlogged(), redirect_stdout(output), redirect_stderr(errors):
        status = _ended(arguments)
    return CompletedProcess(dispatcher(*arguments), status, _text(output), _text(errors))


def _ended(arguments: tuple[str, ...]) -> int:
    """The exit status; a sentence instead of one is written where Python would write it."""
    try:
        app(list(arguments), prog_name="dispatcher")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    return 0


@contextmanager
def _surrounded(variables: Mapping[str, str]) -> Iterator[None]:
    """The environment and the folder of a process that `run` starts."""
    wanted = environment(variables)
    with pytest.MonkeyPatch.context() as patch:
        for name in surroundings().keys() - wanted.keys():
            patch.delenv(name)
        for name, value in wanted.items():
            patch.setenv(name, value)
        patch.chdir(ROOT)
        yield


@contextmanager
def _unlogged() -> Iterator[None]:
    """Without pytest's handlers: what is logged is shown on standard error, as it is to an operator."""
    root = logging.getLogger()
    kept, root.handlers = root.handlers, []
    try:
        yield
    finally:
        root.handlers = kept


def _stream(errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
