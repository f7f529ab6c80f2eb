"""Parts that people do, as an operator types it, at a dispatcher with keys."""

import json
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.cli.typed import typed
from tests.scenario.program import Program, dispatcher, run

Type = Callable[..., CompletedProcess[str]]
pytestmark = pytest.mark.xdist_group("handoffs")  # one dispatcher, not one per process


def said(result: CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def refused(result: CompletedProcess[str]) -> str:
    assert (result.returncode, result.stdout) == (1, "")
    return result.stderr.strip()


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {
        "DISPATCHER_DATA_DIR": str(tmp_path_factory.mktemp("people")),
        "DISPATCHER_ENCODER__NAME": "hashing",
        "DISPATCHER_ROUTING__FALLBACK": "people",
        "COLUMNS": "200",
    }


@pytest.fixture(scope="module")
def keys(variables: dict[str, str]) -> dict[str, str]:
    """A key for each role."""
    assert typed("upgrade", variables=variables).returncode == 0
    holders = {"caller": "shop", "admin": "root"}
    return {
        role: said(typed("keys", "create", "--role", role, "--subject", name, variables=variables))
        for role, name in holders.items()
    }


@pytest.fixture(scope="module")
def url(variables: dict[str, str], keys: dict[str, str]) -> Iterator[str]:
    with Program(*dispatcher("run", "--port", "0"), variables=variables) as program:
        yield program.wait_for(r"listening on (http://\S+)")[1]


@pytest.fixture
def handoff(url: str, keys: dict[str, str], variables: dict[str, str]) -> Type:
    """Run `dispatcher handoff …` as the administrator."""
    return lambda *words, key=keys["admin"]: typed(
        "handoff", *words, "--url", url, "--key", key, variables=variables
    )


def ask(url: str, key: str, path: str, *more: str) -> Any:
    return json.loads(said(run("curl", "-sf", f"{url}{path}", "-H", f"Authorization: Bearer {key}", *more)))


def test_what_waits_is_listed_and_answered_for_its_caller(handoff: Type, url: str, keys: dict[str, str]):
    body = json.dumps({"message": "sing a song"})
    answer = ask(url, keys["caller"], "/v1/chat", "-H", "Content-Type: application/json", "-d", body)
    task_id = f"{answer['request_id']}.0"

    listed = said(handoff("list"))
    answered = said(handoff("answer", task_id, "la la"))
    again = said(handoff("answer", task_id, "la la"))
    seen = ask(url, keys["caller"], f"/v1/requests/{answer['request_id']}")

    assert task_id in listed
    assert "sing a song" in listed
    assert answered == again == f"answered {task_id}"
    assert seen["parts"][0]["handoff"]["answer"] == "la la"
    assert task_id not in said(handoff("list"))
    done = said(handoff("list", "--answered"))
    assert "la la" in done
    assert "root" in done
    assert "answered by root" in refused(handoff("answer", task_id, "no"))


def test_a_list_that_is_not_whole_says_so_and_how_it_goes_on(handoff: Type, url: str, keys: dict[str, str]):
    ids = []
    for text in ("sing one song", "sing two songs"):
        body = json.dumps({"message": text})
        made = ask(url, keys["caller"], "/v1/chat", "-H", "Content-Type: application/json", "-d", body)
        ids.append(f"{made['request_id']}.0")

    first = said(handoff("list", "--limit", "1"))
    rest = said(handoff("list", "--limit", "1", "--after", ids[0]))

    assert ids[0] in first
    assert first.endswith(f"more exist: --after {ids[0]}")
    assert ids[1] in rest
    assert "more exist" not in rest


def test_only_administrators_see_it_and_only_what_there_is(handoff: Type, keys: dict[str, str]):
    assert refused(handoff("list", key=keys["caller"]))
    assert "Nothing of this id" in refused(handoff("answer", "nothing", "yes"))
