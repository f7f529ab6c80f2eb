"""Looking back at what a real dispatcher decided, while it runs."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from dispatcher.assembly.storage import open_storage
from dispatcher.cli.period import read_time
from dispatcher.cli.replay import replay
from dispatcher.cli.replay_options import ReplayOptions
from dispatcher.errors import ConfigurationError
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.stored_calibration import Made
from dispatcher.settings import load_settings
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.tuning.decisions.decision_log import read_entries
from tests.cli.typed import typed
from tests.scenario.program import Program, dispatcher, run

NOW = datetime(2026, 11, 8, 12, 0, tzinfo=UTC)
TEXTS = ("我的订单到哪一步了？", "有什么优惠活动吗", "where is my order", "how tall is mount everest")
pytestmark = pytest.mark.xdist_group("decisions")  # one dispatcher, not one per process


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return {"DISPATCHER_DATA_DIR": str(folder)}


@pytest.fixture(scope="module")
def url(variables):
    """A running dispatcher."""
    agents = ("--agent", "agents.order:agent", "--agent", "agents.promotion:agent")
    start = dispatcher("run", "--development", "--port", "0", *agents)
    with Program(*start, variables=variables) as program:
        yield program.wait_for(r"listening on (http://\S+)")[1]


@pytest.fixture(scope="module")
def decided(url):
    """What it answered TEXTS."""
    answers = []
    for text in TEXTS:
        body = json.dumps({"message": text})
        answer = run("curl", "-sf", f"{url}/v1/chat", "-H", "Content-Type: application/json", "-d", body)
        answers.append(json.loads(answer.stdout))
    return answers


@pytest.fixture
def command(decided, variables):
    return lambda *arguments: typed(*arguments, variables=variables)


def test_nothing_changes_under_the_terms_in_force(command, decided):
    result = command("replay", "--json")

    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["decisions"] == sum(len(answer["parts"]) for answer in decided)
    assert (report["unexplained"], report["changed"], report["moves"]) == (0, [], [])
    assert report["before"] == report["after"]


def test_a_floor_of_one_refuses_everybody_and_the_table_says_whom(command, decided):
    report = json.loads(command("replay", "--json", "--set", "similarity_floor=1").stdout)
    table = command("replay", "--set", "similarity_floor=1").stdout

    served = [part for answer in decided for part in answer["parts"] if part["agent_id"]]
    assert served
    assert report["counts"]["refused"] == len(served)
    assert {move["to"] for move in report["moves"]} == {"out_of_scope"}
    assert "nobody was chosen" in table
    assert served[0]["intent"] in table


def test_what_is_exported_replays_the_same_without_the_database(command, tmp_path):
    file = tmp_path / "decisions.jsonl"

    exported = command("export", "decisions", "--out", str(file))
    again = command("replay", "--json", "--from", str(file), "--set", "weights.similarity=0.1")

    assert exported.returncode == 0, exported.stderr
    assert {entry.decision.text for entry in read_entries(file)}
    direct = command("replay", "--json", "--set", "weights.similarity=0.1")
    assert json.loads(again.stdout) == json.loads(direct.stdout)


def test_a_stored_calibration_can_be_tried_on_what_was_decided(command):
    listed = json.loads(command("calibrations", "list", "--json").stdout)["calibrations"]
    (own,) = [one["number"] for one in listed if one["state"] == "in_force"]

    same = command("replay", "--json", "--calibration", str(own))
    missing = command("replay", "--calibration", "999")

    assert json.loads(same.stdout)["changed"] == [], same.stderr
    assert (missing.returncode, missing.stderr) == (1, "error: there is no calibration 999\n")


def test_decisions_of_another_encoder_are_left_out_of_a_replay_under_a_calibration(command, tmp_path):
    listed = json.loads(command("calibrations", "list", "--json").stdout)["calibrations"]
    (own,) = [one["number"] for one in listed if one["state"] == "in_force"]
    file = tmp_path / "decisions.jsonl"
    command("export", "decisions", "--out", str(file))
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines[0]["decision"]["encoder_id"] = "an older one"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    told = command("replay", "--from", str(file), "--calibration", str(own))
    report = json.loads(command("replay", "--json", "--from", str(file), "--calibration", str(own)).stdout)

    assert "1 decisions are of another encoder than the calibration; left out" in told.stderr
    assert (report["other_encoder"], report["decisions"]) == (1, len(lines) - 1)
    assert (report["changed"], report["changed_left_out"]) == ([], 0)


async def test_a_calibration_with_another_background_is_no_terms(tmp_path):
    settings = tmp_path / "dispatcher.yaml"
    settings.write_text(f"data_dir: {tmp_path}\nencoder: {{name: hashing}}\n", encoding="utf-8")
    made = Calibration(
        encoder_id="hashing-ngram-1", registry_version=1, kind="labelled", floor=0.2, curve=None
    )
    async with open_storage(load_settings(settings)) as database:
        old = Made(recorded=Recorded(calibration=made, contrast="of an older version"), made_by="somebody")
        number = await SqlCalibrations(database).propose(old)

    with pytest.raises(ConfigurationError, match="measures scores in another way"):
        await replay(ReplayOptions(calibration=number, config=settings))


def test_parquet_holds_the_same_decisions(command, tmp_path):
    pandas = pytest.importorskip("pandas")
    lines, table = tmp_path / "decisions.jsonl", tmp_path / "decisions.parquet"
    command("export", "decisions", "--out", str(lines))

    written = command("export", "decisions", "--out", str(table), "--format", "parquet")

    assert written.returncode == 0, written.stderr
    frame = pandas.read_parquet(table)
    assert list(frame.document) == lines.read_text(encoding="utf-8").splitlines(keepends=True)
    assert set(frame.outcome) <= {"selected", "out_of_scope"}


def test_nothing_is_overwritten_and_no_time_means_nothing(command, tmp_path):
    file = tmp_path / "decisions.jsonl"
    file.write_text("mine", encoding="utf-8")

    refused = command("export", "decisions", "--out", str(file))
    empty = command("replay", "--json", "--until", "2020-01-01")

    assert (refused.returncode, file.read_text(encoding="utf-8")) == (1, "mine")
    assert json.loads(empty.stdout)["decisions"] == 0


def test_unsure_texts_are_offered_for_labelling_with_what_was_near(command, tmp_path):
    file = tmp_path / "unsure.jsonl"

    written = command("export", "unsure", "--out", str(file), "--margin", "2", "--height", "2")

    assert written.returncode == 0, written.stderr
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert rows
    for row in rows:
        assert row["agents"] is None
        assert row["options"][0]["cosine"] == max(one["cosine"] for one in row["options"])


def test_feedback_becomes_rows_of_an_evaluation_set(command, decided, tmp_path, url):
    first = decided[0]
    body = json.dumps({"judgements": [{"position": 0, "verdict": "out_of_scope"}]})
    path = f"{url}/v1/requests/{first['request_id']}/feedback"
    assert run("curl", "-sf", path, "-H", "Content-Type: application/json", "-d", body).returncode == 0
    file = tmp_path / "labelled.jsonl"

    written = command("export", "labelled", "--out", str(file))

    assert written.returncode == 0, written.stderr
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert rows == [{"text": first["parts"][0]["intent"], "lang": "zh", "agents": []}]


def test_labels_for_what_nobody_declares_any_more_are_left_out_and_counted(
    command, decided, tmp_path, url, variables
):
    file, gone = tmp_path / "labelled.jsonl", decided[2]["request_id"]
    body = json.dumps({"judgements": [{"position": 0, "verdict": "right"}]})
    path = f"{url}/v1/requests/{gone}/feedback"
    assert run("curl", "-sf", path, "-H", "Content-Type: application/json", "-d", body).returncode == 0

    with closing(sqlite3.connect(f"{variables['DISPATCHER_DATA_DIR']}/dispatcher.db")) as database, database:
        said = (
            "UPDATE feedback SET verdict = 'wrong_capability', capability = 'gone.away' WHERE request_id = ?"
        )
        assert database.execute(said, [gone]).rowcount == 1
    written = command("export", "labelled", "--out", str(file))

    assert written.returncode == 0, written.stderr
    assert "1 left out: nobody declares their capability any more" in written.stdout
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == int(written.stdout.split()[0])
    assert decided[2]["parts"][0]["intent"] not in [row["text"] for row in rows]


def test_registry_and_feedback_are_an_evaluation_set(command, tmp_path):
    folder = tmp_path / "ours"
    folder.mkdir()
    request = {"text": "where is my order", "lang": "en", "agents": ["order.query"]}
    (folder / "eval.jsonl").write_text(json.dumps(request) + "\n", encoding="utf-8")

    exported = command("export", "agents", "--out", str(folder / "agents.jsonl"))
    measured = command("eval", str(folder), "--json")

    assert exported.returncode == 0, exported.stderr
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout.splitlines()[-1])["counts"]["top1"] == 1


def test_refused_texts_are_grouped(command, decided):
    shown = command("gaps", "--least", "1")

    refused = [part["intent"] for one in decided for part in one["parts"] if part["status"] == "out_of_scope"]
    assert refused
    assert shown.stdout.startswith(f"refused texts: {len(refused)}"), shown.stderr
    assert all(text in shown.stdout for text in refused)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0m", NOW),
        ("7d", datetime(2026, 11, 1, 12, 0, tzinfo=UTC)),
        ("2w", datetime(2026, 10, 25, 12, 0, tzinfo=UTC)),
        ("36h", datetime(2026, 11, 7, 0, 0, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T08:00+08:00", datetime(2026, 11, 1, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_they_are_typed(text, moment):
    assert read_time(text, NOW) == moment.timestamp() * 1000


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7y", "-7d", "2026-13-01", "7d ago"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ConfigurationError, match="is no time"):
        read_time(text, NOW)
