"""Dead letters as an operator types them, at a dispatcher with keys."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.cli.typed import typed
from tests.scenario.program import Program, dispatcher, run

MENDERS = """
from pathlib import Path

from dispatcher.sdk import Agent, BusinessError, TaskView

one, two = Agent("mender-one"), Agent("mender-two")


@one.handler("thing.mend", description="mends things", idempotent=True)
@two.handler("thing.mend", description="mends things", idempotent=True)
def mend(task: TaskView) -> str:
    if not (Path(__file__).parent / "glue").exists():
        raise BusinessError("no glue", code="no_glue")
    return "mended"
"""

Type = Callable[..., CompletedProcess[str]]
Ask = Callable[..., Any]
pytestmark = pytest.mark.xdist_group("dead letters")  # one dispatcher, not one per process


def said(result: CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def refused(result: CompletedProcess[str]) -> str:
    assert (result.returncode, result.stdout) == (1, "")
    return result.stderr.strip()


@pytest.fixture(scope="module")
def glue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file beside the agents; they fail without it."""
    return tmp_path_factory.mktemp("menders") / "glue"


@pytest.fixture(scope="module")
def variables(glue: Path) -> dict[str, str]:
    folder = glue.parent
    (folder / "menders.py").write_text(MENDERS, encoding="utf-8")
    return {
        "DISPATCHER_DATA_DIR": str(folder),
        "DISPATCHER_ENCODER__NAME": "hashing",
        "PYTHONPATH": str(folder),
    }


@pytest.fixture(scope="module")
def keys(variables: dict[str, str]) -> dict[str, str]:
    """A key for each role; the caller may use `thing.mend`."""
    assert typed("upgrade", variables=variables).returncode == 0
    said(typed("grants", "set", "shop", "thing.mend", variables=variables))
    holders = {"caller": "shop", "admin": "root"}
    return {
        role: said(typed("keys", "create", "--role", role, "--subject", name, variables=variables))
        for role, name in holders.items()
    }


@pytest.fixture(scope="module")
def url(variables: dict[str, str], keys: dict[str, str]) -> Iterator[str]:
    agents = ("--agent", "menders:one", "--agent", "menders:two")
    with Program(*dispatcher("run", "--port", "0", *agents), variables=variables) as program:
        yield program.wait_for(r"listening on (http://\S+)")[1]


@pytest.fixture
def dead(url: str, keys: dict[str, str]) -> Type:
    """Run `dispatcher dead …` as the administrator."""
    return lambda *words, key=keys["admin"]: typed("dead", *words, "--url", url, "--key", key)


@pytest.fixture
def ask(url: str, keys: dict[str, str]) -> Ask:
    """What the gateway answers the caller, on a post if there is a body."""

    def asked(path: str, *more: str) -> Any:
        header = f"Authorization: Bearer {keys['caller']}"
        return json.loads(said(run("curl", "-sf", f"{url}{path}", "-H", header, *more)))

    return asked


@pytest.fixture
def failed(ask: Ask, glue: Path) -> tuple[str, str]:
    """The id of a task that ended without success, and the agent that failed."""
    glue.unlink(missing_ok=True)
    body = '{"message": "mend it", "capability": "thing.mend"}'
    answer = ask("/v1/chat", "-H", "Content-Type: application/json", "-d", body)
    assert answer["status"] == "failed"
    return f"{answer['request_id']}.0", answer["parts"][0]["agent_id"]


def rows(table: str) -> dict[str, list[str]]:
    """The cells of each row behind its first, which is the key."""
    lines = [line.split("│")[1:-1] for line in table.splitlines() if "thing.mend" in line]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_a_dead_letter_is_listed_shown_and_done_again(
    dead: Type, ask: Ask, failed: tuple[str, str], glue: Path
):
    dead_id, agent = failed

    listed = rows(said(dead("list", "--cause", "agent_error", "--agent", agent)))[dead_id]
    shown = json.loads(said(dead("show", dead_id)))
    glue.touch()
    retried = said(dead("retry", dead_id)).removeprefix("retried as request ")
    everything, unsolved = rows(said(dead("list"))), rows(said(dead("list", "--open")))

    assert listed == ["agent_error", "no_glue", "thing.mend", agent, "1", ""]
    assert (shown["dead_id"], shown["text"]) == (dead_id, "mend it")
    assert shown["tried"][0]["error_code"] == "no_glue"
    assert ask(f"/v1/requests/{retried}")["request_id"] == retried
    assert everything[dead_id][-1] == retried
    assert dead_id not in unsolved
    assert f"It was retried as request {retried}" in refused(dead("retry", dead_id))


def test_a_dead_letter_is_given_to_another_agent(dead: Type, ask: Ask, failed: tuple[str, str]):
    dead_id, agent = failed
    (other,) = {"mender-one", "mender-two"} - {agent}

    nobody = refused(dead("route", dead_id, "--to", "nobody"))
    routed = said(dead("route", dead_id, "--to", other)).removeprefix("retried as request ")

    assert "Nobody gets it now" in nobody
    assert ask(f"/v1/requests/{routed}")["parts"][0]["agent_id"] == other


@pytest.mark.parametrize("key", ["ard_0_0", ""])
def test_a_wrong_key_is_refused(dead: Type, key: str):
    assert "key" in refused(dead("list", key=key))


def test_only_administrators_see_dead_letters_and_only_those_there_are(dead: Type, keys: dict[str, str]):
    assert refused(dead("list", key=keys["caller"]))
    assert "no dead letter of this id" in refused(dead("show", "nothing"))
    assert "cause" in refused(dead("list", "--cause", "bad"))
