"""Keys, grants, schema and retention as an operator types them."""

import sqlite3
from subprocess import CompletedProcess

import pytest

from tests.scenario.program import Program, dispatcher, run

DAY_MS = 24 * 3600 * 1000


def said(result: CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def refused(result: CompletedProcess[str]) -> str:
    """The one sentence of a command that could not do what it was asked."""
    assert (result.returncode, result.stdout) == (1, "")
    (sentence,) = result.stderr.strip().splitlines()
    return sentence


def test_a_key_is_shown_once_listed_without_its_secret_and_revoked(command):
    key = said(command("keys", "create", "--role", "caller", "--subject", "商店"))
    _, key_id, secret = key.split("_", 2)

    listed = said(command("keys", "list"))
    revoked = said(command("keys", "revoke", key_id))
    afterwards = said(command("keys", "list"))

    (row,) = [line for line in listed.splitlines() if key_id in line]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [key_id, "caller", "商店", "no"]
    assert secret not in listed
    assert revoked == f"{key_id} is revoked"
    assert [line.split("│")[4].strip() for line in afterwards.splitlines() if key_id in line] == ["yes"]


@pytest.mark.parametrize("key_id", ["0123456789abcdef", "\udcff"])
def test_only_a_key_that_exists_can_be_revoked(command, key_id):
    assert "there is no key with the id" in refused(command("keys", "revoke", key_id))


def test_a_key_for_nobody_who_can_exist_is_refused(command):
    reason = refused(command("keys", "create", "--role", "agent", "--subject", "Order"))

    assert "an agent's id is 1 to 64 of a-z" in reason


def test_grants_are_replaced_as_a_whole_and_shown_one_a_line(command):
    first = said(command("grants", "set", "shop", "order.query", "faq.answer"))
    shown = said(command("grants", "show", "shop"))
    none = said(command("grants", "set", "shop"))

    assert first == "shop may use: faq.answer, order.query"
    assert shown.splitlines() == ["faq.answer", "order.query"]
    assert none == "shop may use: nothing"
    assert said(command("grants", "show", "shop")) == ""


def test_grants_that_nobody_can_serve_are_stored_and_named(command, tmp_path):
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path), "DISPATCHER_ENCODER__NAME": "hashing"}
    start = dispatcher("run", "--development", "--port", "0", "--agent", "agents.order:agent")
    with Program(*start, variables=variables) as program:
        program.wait_for("listening on")
        assert program.stop() == 0

    misspelt = command("grants", "set", "shop", "order.query", "order.qurey")
    right = command("grants", "set", "shop", "order.query")

    assert said(misspelt) == "shop may use: order.query, order.qurey"
    assert misspelt.stderr == "warning: no registered agent declares order.qurey\n"
    assert right.stderr == ""


def test_grants_for_names_that_cannot_exist_are_refused_and_none_is_stored(command):
    assert "'Order.*' is not a capability's name" in refused(
        command("grants", "set", "shop", "faq.answer", "Order.*")
    )
    assert said(command("grants", "show", "shop")) == ""


def test_an_upgrade_may_be_repeated(command):
    assert [said(command("upgrade")) for _ in range(2)] == ["the schema is current"] * 2


@pytest.mark.parametrize("url", ["postgresql://u:hunter2@h:abc/d", "hunter2"])
def test_a_store_that_cannot_be_one_is_one_clear_sentence(command, url):
    assert "hunter2" not in refused(command("upgrade", DISPATCHER_STORE__URL=url))


@pytest.fixture
def answered(tmp_path):
    """The variables of a database in which the users u1 and u2 have one answered request each."""
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path), "DISPATCHER_ENCODER__NAME": "hashing"}
    with Program(*dispatcher("run", "--development", "--port", "0"), variables=variables) as program:
        url = program.wait_for(r"listening on (http://\S+)")[1]
        for user in ("u1", "u2"):
            body = f'{{"message": "hello", "user_id": "{user}"}}'
            post = ("curl", "-sf", f"{url}/v1/chat", "-H", "Content-Type: application/json", "-d", body)
            assert run(*post).returncode == 0
        assert program.stop() == 0
    return tmp_path / "dispatcher.db"


def test_a_user_is_forgotten_and_old_requests_are_pruned(command, answered):
    forgotten = said(command("forget", "--user", "u1"))
    elsewhere = said(command("forget", "--user", "u2", "--caller", "somebody"))
    young = said(command("prune"))
    with sqlite3.connect(answered) as database:
        database.execute("UPDATE requests SET finished_ms = finished_ms - ?", (91 * DAY_MS,))
    database.close()
    old = said(command("prune"))

    assert (forgotten, elsewhere) == ("requests deleted: 1", "requests deleted: 0")
    tables = ("requests", "decisions", "results", "sessions", "dead_frames")
    assert set(young.splitlines()) == {f"{table}: 0" for table in tables}
    assert "requests: 1" in old.splitlines()


def test_a_user_id_that_nobody_can_have_is_refused(command):
    assert "not UTF-8" in refused(command("forget", "--user", "\udcff"))
