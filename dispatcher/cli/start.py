"""`dispatcher run` as far as it costs nothing: what is set wrong is told before the server is imported."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dispatcher.settings import Settings, load_settings


async def start(
    config: Path | None, *, host: str | None, port: int | None, development: bool, agents: Sequence[str]
) -> None:
    """Serve; raises ConfigurationError, with one sentence, for whatever keeps it from starting."""
    read = partial(_settings, config, host=host, port=port, development=development)
    settings = read()
    from dispatcher.cli.serve import serve

    await serve(settings, read, agents)


def _settings(config: Path | None, *, host: str | None, port: int | None, development: bool) -> Settings:
    given = {"host": host, "port": port}
    server = {name: value for name, value in given.items() if value is not None}
    return load_settings(config, server=server, auth={"development": True} if development else {})
