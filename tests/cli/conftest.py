"""A folder for a database, and a running dispatcher with two sample agents."""

from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.typed import typed
from tests.scenario.program import Program, dispatcher, run

Command = Callable[..., CompletedProcess[str]]


def _in(folder: Path, **variables: str) -> dict[str, str]:
    return {"DISPATCHER_DATA_DIR": str(folder), "DISPATCHER_ENCODER__NAME": "hashing", **variables}


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run `dispatcher …` on a database of this test's own; what serves, in a process of its own."""

    def ended(*arguments: str, **more: str) -> CompletedProcess[str]:
        variables = _in(tmp_path, **more)
        if arguments[0] == "run":
            return run(*dispatcher(*arguments), variables=variables)
        return typed(*arguments, variables=variables)

    return ended


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dispatcher in development mode."""
    agents = ("--agent", "agents.order:agent", "--agent", "agents.promotion:agent")
    start = dispatcher("run", "--development", "--port", "0", *agents)
    with Program(*start, variables=_in(tmp_path_factory.mktemp("data"))) as program:
        yield program.wait_for(r"listening on (http://\S+)")[1]


@pytest.fixture
def asking(server: str) -> Command:
    """Run `dispatcher …` against the running one, through a pipe that calls itself 40 columns wide."""
    return lambda *arguments: typed(*arguments, "--url", server, variables={"COLUMNS": "40"})
