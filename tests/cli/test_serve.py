"""`dispatcher run` that can't start as it was told."""

import sys
from subprocess import CompletedProcess

import pytest
from starlette.testclient import TestClient

from dispatcher.cli.serve import http_config, load_agent
from dispatcher.errors import ConfigurationError
from tests.gateway.stubs import ORDER_AGENT, Api, register_body
from tests.scenario.program import Program, dispatcher

RUN = ("run", "--development", "--port", "0")


def refused(result: CompletedProcess[str]) -> str:
    assert result.returncode == 1
    assert result.stdout == ""
    (sentence,) = result.stderr.strip().splitlines()
    return sentence


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_one_clear_sentence(command, host):
    said = refused(command("run", "--port", "0", "--host", host))

    assert said.startswith(f"error: cannot listen on {host}:0: ")
    assert "Unknown error" not in said


def test_a_broken_configuration_file_is_one_clear_sentence(command, tmp_path):
    (tmp_path / "broken.yaml").write_text("server: [1\n")

    assert "is not YAML" in refused(command(*RUN, "--config", str(tmp_path / "broken.yaml")))


def test_a_wrong_broker_is_one_clear_sentence(command):
    assert "setting 'broker.url'" in refused(command(*RUN, DISPATCHER_BROKER__URL="http://x"))


def test_the_command_line_wins_over_the_file(tmp_path):
    file = tmp_path / "dispatcher.yaml"
    file.write_text(
        f"data_dir: {tmp_path / 'data'}\nencoder: {{name: hashing}}\n"
        "server: {host: 192.0.2.1, port: 1, max_wait_s: 7}\nlog_format: text\n"
    )

    with Program(*dispatcher(*RUN, "--host", "127.0.0.1", "--config", str(file))) as program:
        program.wait_for(r"listening on http://127\.0\.0\.1:\d+")
        shown = program.wait_for("settings.effective")

        assert "7.0" in shown.string
        assert program.stop() == 0


@pytest.mark.parametrize(
    ("code", "name", "sentence"),
    [
        (
            "import nope",
            "mine:agent",
            "the module 'mine' can't be imported: ModuleNotFoundError: No module named 'nope'",
        ),
        ("import nope.more", "mine:agent", "ModuleNotFoundError: No module named 'nope'"),
        ("agent = 1\nagent = (", "mine:agent", "SyntaxError: '(' was never closed (mine.py, line 2)"),
        ("raise SystemExit(2)", "mine:agent", "the module 'mine' can't be imported: SystemExit: 2"),
        ("raise ValueError('two\\nlines')", "mine:agent", "ValueError: two lines"),
        (
            "from dispatcher.sdk import Agent\nAgent('A')",
            "mine:agent",
            "can't be imported: the agent id 'A' must be",
        ),
        ("agent = 1", "mine:agent", "'mine:agent' is not a dispatcher.sdk.Agent"),
        ("", "mine:agent", "the module 'mine' has no attribute 'agent'"),
        ("", "mine.more:agent", "there is no module 'mine.more'"),
        ("", "yours:agent", "there is no module 'yours'"),
        ("", "mine", "'mine' does not name an agent: write it as module:attribute"),
        ("", "mine.py:agent", "there is no module 'mine.py'"),
        ("", "./mine:agent", "does not name an agent"),
    ],
)
def test_an_agent_that_cannot_be_had_is_one_clear_sentence(tmp_path, monkeypatch, code, name, sentence):
    (tmp_path / "mine.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    with pytest.raises(ConfigurationError) as caught:
        load_agent(name)

    assert sentence in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("sender", "told"), [("127.0.0.1", "192.0.2.7"), ("::1", "192.0.2.7"), ("192.0.2.1", "192.0.2.1")]
)
def test_only_a_proxy_on_this_host_is_believed_whom_it_speaks_for(sender, told):
    api = Api()
    http_config(api.app, 1.0)
    api.client = TestClient(api.app, client=(sender, 50_000))

    api.post(
        "/v1/agents", register_body(), key=ORDER_AGENT, headers={"X-Forwarded-For": "192.0.2.9, 192.0.2.7"}
    )

    assert api.registrar.clients == [told]
