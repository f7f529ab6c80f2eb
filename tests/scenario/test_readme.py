"""What README shows is what happens, in either language: both show the same, and it is done once."""

import json
import secrets
import socket
import sys
from pathlib import Path

import pytest

from tests.scenario.document import blocks, named_blocks, prepared
from tests.scenario.program import ROOT, Program, dispatcher, run
from tests.scenario.test_run import AGENTS

DOCUMENT, TRANSLATION = "README.md", "README.zh-CN.md"
LOCAL = "http://127.0.0.1:8080"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@pytest.fixture
def server(tmp_path: Path):
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path)}
    command = dispatcher("run", "--development", "--port", "0", *AGENTS)
    with Program(*command, variables=variables) as program:
        yield program.wait_for(r"listening on (http://\S+)")[1]


def test_the_translation_shows_the_same_commands_and_answers() -> None:
    assert named_blocks(TRANSLATION) == named_blocks(DOCUMENT)


def test_the_curl_lines_work_and_the_answer_is_the_one_shown(server: str) -> None:
    first, *others = blocks(DOCUMENT, "curl")
    shown = json.loads(blocks(DOCUMENT, "answer")[0])

    answer = json.loads(run("bash", "-ec", prepared(first, {LOCAL: server})).stdout)

    assert answer["answer"] == shown["answer"]
    assert answer["status"] == shown["status"]
    names = ("intent", "capability", "agent_id", "status", "error", "attempts")
    for part, shown_part in zip(answer["parts"], shown["parts"], strict=True):
        assert {n: part[n] for n in names} == {n: shown_part[n] for n in names}
        assert part["similarity"] == pytest.approx(shown_part["similarity"], abs=0.01)
        assert part["score"] == pytest.approx(shown_part["score"], abs=0.02)
        assert shown_part["result"]["data"].items() <= part["result"]["data"].items()
    for line in others:
        assert json.loads(run("bash", "-ec", prepared(line, {LOCAL: server})).stdout)["decisions"]


def test_the_agent_is_short_and_works_through_the_real_chain(tmp_path: Path) -> None:
    (code,) = blocks(DOCUMENT, "agent")
    (tmp_path / "weather.py").write_text(code, encoding="utf-8")
    script = """
import asyncio, json, weather
from dispatcher.sdk.testing import running

async def ask():
    async with running(weather.agent) as client:
        told = await client.chat("x", capability="weather.now", context={"city": "Hangzhou"})
        asked = await client.chat("今天热不热", capability="weather.now")
        print(json.dumps([told["answer"], asked["answer"]]))

asyncio.run(ask())
"""

    answers = run(sys.executable, "-c", script, folder=tmp_path)
    usage = run(sys.executable, "weather.py", "--help", folder=tmp_path)

    assert len([line for line in code.splitlines() if line.strip()]) <= 30
    assert json.loads(answers.stdout.splitlines()[-1]) == ["Hangzhou: 21 °C", "哪个城市？"], answers.stderr
    assert "--broker" in usage.stdout


def test_the_agent_runs_inside_a_gateway_and_answers(tmp_path: Path) -> None:
    (start,), (ask,) = blocks(DOCUMENT, "agent run"), blocks(DOCUMENT, "agent curl")
    (tmp_path / "weather.py").write_text(blocks(DOCUMENT, "agent")[0], encoding="utf-8")
    command = f"exec {start.strip()} --port 0"

    with Program("bash", "-c", command, folder=tmp_path) as program:
        url = program.wait_for(r"listening on (http://\S+)")[1]
        answer = json.loads(run("bash", "-ec", prepared(ask, {LOCAL: url})).stdout)
        without = json.loads(ask.split("-d '")[1].rstrip("'\n"))
        del without["context"]
        bare = ("curl", "-s", f"{url}/v1/chat", "-H", "Content-Type: application/json")
        asked = json.loads(run(*bare, "-d", json.dumps(without)).stdout)
        assert program.stop() == 0

    assert answer["answer"] == "Hangzhou: 21 °C"
    assert [part["status"] for part in asked["parts"]] == ["needs_input"]
    assert asked["parts"][0]["result"]["data"] == {"fields": ["city"]}
    assert "agents.not_running" not in program.text


@pytest.mark.timeout(180)
def test_the_walk_through_on_rabbitmq_and_postgresql_works_as_written(
    postgres_url: str, amqp_url: str, tmp_path: Path
) -> None:
    (addresses,), (steps,) = blocks(DOCUMENT, "walkthrough addresses"), blocks(DOCUMENT, "walkthrough")
    port, prefix = str(_free_port()), f"walk-{secrets.token_hex(4)}"
    variables = {
        "DISPATCHER_STORE__URL": postgres_url,
        "DISPATCHER_BROKER__URL": amqp_url,
        "DISPATCHER_BROKER__PREFIX": prefix,
        "PYTHONPATH": str(ROOT),
    }
    # A prefix of its own, as the broker is shared with other tests.
    script = prepared(steps, {"8080": port, "--broker": f"--prefix {prefix} --broker"}).replace(
        "dispatcher agents list", f"dispatcher agents list --url http://127.0.0.1:{port}"
    )

    assert all(name in addresses for name in ("DISPATCHER_STORE__URL=", "DISPATCHER_BROKER__URL="))
    result = run(
        "bash",
        "-c",
        f"trap 'kill $(jobs -p); wait' EXIT\n{script}",
        folder=tmp_path,
        variables=variables,
        seconds=150,
    )

    answer = json.loads(next(line for line in result.stdout.splitlines() if line.startswith('{"request_id"')))
    assert answer["status"] == "completed", result.stderr
    assert [part["agent_id"] for part in answer["parts"]] == ["order", "promotion"]
    assert "Traceback" not in result.stderr


@pytest.mark.timeout(180)
def test_the_tuning_commands_work_on_what_a_dispatcher_decided(tmp_path: Path) -> None:
    (steps,) = blocks(DOCUMENT, "tuning")
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path)}
    with Program(*dispatcher("run", "--development", "--port", "0", *AGENTS), variables=variables) as program:
        url = program.wait_for(r"listening on (http://\S+)")[1]
        for text in ("我的订单到哪一步了", "how do black holes form"):
            body = json.dumps({"message": text})
            run("curl", "-sf", f"{url}/v1/chat", "-H", "Content-Type: application/json", "-d", body)
    script = prepared(steps, {"notebooks/data": f"{ROOT}/notebooks/data"})

    result = run("bash", "-ec", script, folder=tmp_path, variables=variables, seconds=150)

    assert result.returncode == 0, result.stderr
    assert "top1" in result.stdout
    assert "2 decisions" in result.stdout
    assert "refused texts: 1" in result.stdout
    assert (tmp_path / "to-label.jsonl").read_text(encoding="utf-8").count("\n") == 1
