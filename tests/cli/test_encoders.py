"""`dispatcher encoders`, and a running dispatcher that is told to take another one."""

import json
import signal

import httpx2 as httpx
import pytest

from dispatcher.assembly.known_encoders import KNOWN
from tests.routing.embeddings_stub import embeddings_stub
from tests.scenario.program import Program, dispatcher

QUESTION = {"message": "where is my parcel"}


def test_the_list_says_what_can_be_used_here_and_what_else_needs(command):
    table, document = command("encoders", "list"), command("encoders", "list", "--json")

    rows = json.loads(document.stdout.splitlines()[-1])["encoders"]
    assert [row["name"] for row in rows] == [one.name for one in KNOWN]
    assert rows[0]["installed"]
    assert {"dimensions", "languages", "licence", "needs", "model"} <= rows[0].keys()
    assert all(one.needs in table.stdout and one.model in table.stdout for one in KNOWN)


def test_the_bench_compares_with_the_packaged_one(command):
    result = command("encoders", "bench", "--only", "hashing", "--rounds", "1", "--json")

    report = json.loads(result.stdout.splitlines()[-1])
    assert list(report["encoders"]) == ["use", "hashing"]
    for figures in report["encoders"].values():
        assert list(figures["median_ms"]) == ["1", "8", "32"]
        assert all(value > 0 for value in figures["median_ms"].values())
    assert report["encoders"]["use"]["ratio_to_use"]["8"] == 1


def test_the_bench_prints_a_table_of_what_a_file_configures_too(command, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("environment: test\n")

    result = command("encoders", "bench", "--only", "use", "--rounds", "1", "--config", str(file))

    assert "hashing of own.yaml" in result.stdout


def test_an_unknown_encoder_is_one_clear_sentence(command):
    result = command("encoders", "bench", "--only", "none")

    assert result.returncode == 1
    assert result.stderr.startswith("error: there is no encoder 'none'; there are use, ")


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "dispatcher.yaml"
    file.write_text(_settings("{name: hashing}", tmp_path))
    return file


def _settings(encoder, folder):
    return f"data_dir: {folder / 'data'}\nencoder: {encoder}\n"


def test_a_signal_changes_the_encoder_without_a_new_start(file, tmp_path):
    start = ("run", "--development", "--port", "0", "--agent", "agents.order:agent", "--config", str(file))
    with embeddings_stub() as stub, Program(*dispatcher(*start)) as program:
        url = program.wait_for(r"listening on (http://\S+)")[1]
        assert _encoder(url) == "hashing-ngram-1"

        file.write_text(_settings("{name: hashing, batch_size: 0}", tmp_path))
        program.send(signal.SIGHUP)
        program.wait_for("encoder.not_changed.*batch_size")
        file.write_text(_settings(f"{{name: openai, model: m, url: '{stub.url}'}}", tmp_path))
        program.send(signal.SIGHUP)
        program.wait_for("encoder.changed")

        assert _encoder(url).startswith("openai-m-")
        program.send(signal.SIGHUP)
        program.wait_for("encoder.unchanged")
    assert stub.asked


def _encoder(url):
    answer = httpx.post(f"{url}/v1/route", json=QUESTION, timeout=20).raise_for_status().json()
    return answer["decisions"][0]["encoder_id"]
