"""`dispatcher run` as far as it costs nothing: what is set wrong is told before the server is imported."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dispatcher.cli.execute import execute
from dispatcher.errors import DispatcherError
from dispatcher.settings import Settings, load_settings


def start(
    config: Path | None, *, host: str | None, port: int | None, development: bool, agents: Sequence[str]
) -> None:
    """Serve; whatever keeps it from starting is one sentence on standard error and exit code 1.

    Imports are made before there is an event loop, which would hold an interrupt back until their end.
    """
    read = partial(_settings, config, host=host, port=port, development=development)
    try:
        settings = read()
    except DispatcherError as error:
        sys.exit(f"error: {error.message}")
    from dispatcher.cli.serve import serve

    execute(serve(settings, read, agents))


def _settings(config: Path | None, *, host: str | None, port: int | None, development: bool) -> Settings:
    given = {"host": host, "port": port}
    server = {name: value for name, value in given.items() if value is not None}
    return load_settings(config, server=server, auth={"development": True} if development else {})
