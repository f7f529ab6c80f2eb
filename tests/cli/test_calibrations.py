"""Fitting, trying and taking back calibrations as an operator types it, while a dispatcher runs."""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from dispatcher.assembly.storage import open_storage
from dispatcher.cli.calibrations import show_all
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.stored_calibration import Made
from dispatcher.settings import load_settings
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.store.tables import calibrations
from dispatcher.tuning.basis.versions import code_version
from tests.cli.typed import typed
from tests.scenario.program import Program, dispatcher, run

ASKED = "我的订单到哪一步了？"
INSIDE = [f"我的订单{word}到哪一步了 {number}" for word in ("现在", "", "今天") for number in range(12)]
OUTSIDE = [
    f"how tall is mount {name} {number}" for name in ("everest", "fuji", "blanc") for number in range(12)
]

pytestmark = pytest.mark.xdist_group("calibrations")  # one dispatcher, not one per process


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return {"DISPATCHER_DATA_DIR": str(folder), "DISPATCHER_ENCODER__NAME": "hashing"}


@pytest.fixture(scope="module")
def url(variables):
    """A running dispatcher."""
    agents = ("--agent", "agents.order:agent", "--agent", "agents.promotion:agent")
    start = dispatcher("run", "--development", "--port", "0", *agents)
    with Program(*start, variables=variables) as program:
        yield program.wait_for(r"listening on (http://\S+)")[1]


@pytest.fixture(scope="module")
def command(url, variables):
    return lambda *arguments: typed(*arguments, variables=variables)


@pytest.fixture(scope="module")
def said(command):
    def ask(*arguments) -> str:
        result = command(*arguments)
        assert result.returncode == 0, result.stderr
        return str(result.stdout).strip()

    return ask


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    file = tmp_path_factory.mktemp("rows") / "labelled.jsonl"
    rows = [{"text": text, "lang": "zh", "agents": ["order.query"]} for text in INSIDE]
    rows += [{"text": text, "lang": "en", "agents": []} for text in OUTSIDE]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(file)


def _post(url: str, body: object) -> dict[str, Any]:
    answer = run("curl", "-sf", url, "-H", "Content-Type: application/json", "-d", json.dumps(body))
    assert answer.returncode == 0, answer.stderr
    read: dict[str, Any] = json.loads(answer.stdout)
    return read


def _ask(url: str, message: str) -> dict[str, Any]:
    decided: dict[str, Any] = _post(f"{url}/v1/route", {"message": message})["decisions"][0]
    return decided


def _until(url: str, holds: Callable[[dict[str, Any]], bool], seconds: float = 20.0) -> dict[str, Any]:
    """The first decision on ASKED that fits."""
    ends = time.monotonic() + seconds
    while True:
        decided = _ask(url, ASKED)
        if holds(decided):
            return decided
        assert time.monotonic() < ends, decided


def test_without_rows_it_shows_what_self_calibration_gives_and_proposes_nothing(said):
    before = json.loads(said("calibrations", "list", "--json"))
    shown = json.loads(said("fit", "--json"))

    assert shown["self"]["kind"] in {"self", "reference"}
    assert (shown["fitted"], shown["proposed"], shown["report"]) == (None, None, {})
    assert json.loads(said("calibrations", "list", "--json")) == before
    (own,) = [one for one in before["calibrations"] if one["state"] == "in_force"]
    assert (own["number"], own["origin"]) == (shown["in_force"], "self")
    # In force, or proposed where it would refuse clearly more of the examples: stored by the dispatcher.
    stored = {one["scope_floor"] for one in before["calibrations"] if one["made_by"] == "dispatcher"}
    assert any(floor == pytest.approx(shown["self"]["scope_floor"]) for floor in stored)


def test_a_fit_is_proposed_tried_in_shadow_put_in_force_and_taken_back(said, url, labelled):
    fitted = json.loads(said("fit", "--labelled", labelled, "--json"))
    number = fitted["proposed"]
    assert fitted["fitted"]["kind"] == "labelled"
    assert set(fitted["report"]["figures"]) == {"in_scope_lost", "oos_rejected", "ece"}
    own = _ask(url, ASKED)
    assert (own["shadow"], own["calibration"]) == (None, fitted["self"]["kind"])

    assert said("calibrations", "shadow", str(number)) == f"{number} is shadow"
    tried = _until(url, lambda decided: decided["shadow"] is not None)
    assert tried["shadow"]["number"] == number
    assert tried["scope_floor"] == own["scope_floor"]

    said("calibrations", "use", str(number))
    used = _until(url, lambda decided: decided["calibration"] == f"labelled {number}")
    assert used["scope_floor"] == pytest.approx(fitted["fitted"]["scope_floor"])

    said("calibrations", "use", str(fitted["in_force"]))
    back = _until(url, lambda decided: decided["calibration"] == own["calibration"])
    assert back["scope_floor"] == own["scope_floor"]
    states = {
        one["number"]: one["state"]
        for one in json.loads(said("calibrations", "list", "--json"))["calibrations"]
    }
    assert (states[number], states[fitted["in_force"]]) == ("retired", "in_force")


def test_decisions_in_shadow_are_stored_and_compared(said, url, labelled):
    number = json.loads(said("fit", "--labelled", labelled, "--json"))["proposed"]
    said("calibrations", "shadow", str(number))
    _until(url, lambda decided: (decided["shadow"] or {}).get("number") == number)
    body = json.dumps({"message": ASKED})
    for _ in range(3):
        run("curl", "-sf", f"{url}/v1/chat", "-H", "Content-Type: application/json", "-d", body)

    compared = json.loads(said("calibrations", "compare", "--json"))
    table = said("calibrations", "compare")

    (one,) = [one for one in compared["shadows"] if one["number"] == number]
    assert one["decisions"] == 3
    assert one["since_ms"] <= one["until_ms"]
    assert f"calibration {number} was in shadow for 3 decisions" in table
    said("calibrations", "retire", str(number))
    _until(url, lambda decided: decided["shadow"] is None)


def test_the_list_and_one_of_it_are_shown(said, labelled):
    number = json.loads(said("fit", "--labelled", labelled, "--json"))["proposed"]

    listed = said("calibrations", "list")
    shown = json.loads(said("calibrations", "show", str(number)))

    assert "labelled" in listed
    assert (shown["number"], shown["state"], shown["made_by"]) == (number, "proposed", "command line")
    assert shown["report"]["rows"] == {"inside": len(INSIDE), "outside": len(OUTSIDE), "left_out": {}}
    assert shown["document"]["kind"] == "labelled"
    digest = hashlib.sha256(Path(labelled).read_bytes()).hexdigest()
    assert shown["report"]["source"] == {"file": "labelled.jsonl", "sha256": digest}
    assert shown["report"]["code"] == code_version()


def test_texts_that_wait_for_their_label_are_counted_and_a_fit_shows_how_far_it_differs(
    said, labelled, tmp_path
):
    file = tmp_path / "partly.jsonl"
    waiting = json.dumps({"text": "is it new?", "lang": "en", "agents": None})
    file.write_text(f"{waiting}\n{Path(labelled).read_text(encoding='utf-8')}", encoding="utf-8")

    told = said("fit", "--labelled", str(file))

    assert "left out: 1 not labelled yet" in " ".join(told.split())
    assert "top1_or_twin with either: " in told
    assert "difference" in told


def test_feedback_is_too_little_until_there_is_more_of_it(url, command):
    before = command("fit", "--traffic")
    texts = (*INSIDE[:3], *OUTSIDE[:2])
    for text, verdict in zip(texts, ("right", "right", None, "out_of_scope", None), strict=True):
        answer = _post(f"{url}/v1/chat", {"message": text})
        if verdict is not None:
            path = f"{url}/v1/requests/{answer['request_id']}/feedback"
            _post(path, {"judgements": [{"position": 0, "verdict": verdict}]})
    after = command("fit", "--traffic")

    needs = "error: a fit needs 30 texts in scope and 30 out of scope; there are"
    assert (before.returncode, before.stderr) == (1, f"{needs} 0 and 0\n")
    assert (after.returncode, after.stderr) == (1, f"{needs} 2 and 1\n")


def test_self_calibration_is_proposed_where_that_is_asked_for(said):
    proposed = json.loads(said("fit", "--propose", "--json"))

    shown = json.loads(said("calibrations", "show", str(proposed["proposed"])))
    assert (shown["origin"], shown["state"]) == ("self", "proposed")


def test_one_of_another_encoder_is_refused(command, variables, said, labelled):
    number = json.loads(said("fit", "--labelled", labelled, "--json"))["proposed"]

    other = {**variables, "DISPATCHER_ENCODER__NAME": "use"}
    refused = typed("calibrations", "use", str(number), variables=other)

    assert refused.returncode == 1
    assert "it was made with the encoder 'hashing-ngram-1'" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("calibrations", "show", "4000"), "there is no calibration 4000"),
        (("calibrations", "use", "4000"), "There is no calibration of this number."),
        (("fit", "--labelled", "nothing.jsonl"), "the file 'nothing.jsonl' can't be read"),
        (("fit", "--labelled", "x", "--traffic"), "don't go together"),
        (("fit", "--traffic", "--since", "soon"), "'soon' is no time"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(command, arguments, sentence):
    result = command(*arguments)

    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.strip().splitlines()
    assert sentence in line


async def test_one_of_a_later_version_is_listed_as_unreadable(tmp_path, capsys):
    config = tmp_path / "dispatcher.yaml"
    config.write_text(f"data_dir: {tmp_path}\nencoder: {{name: hashing}}\n", encoding="utf-8")
    made = Calibration(encoder_id="hashing-ngram-1", registry_version=1, kind="self", floor=0.25, curve=None)
    async with open_storage(load_settings(config)) as database:
        for _ in range(2):
            recorded = Recorded(calibration=made, contrast="c")
            await SqlCalibrations(database).propose(Made(recorded=recorded, made_by="somebody"))
        async with database.writing() as connection:
            later = update(calibrations).where(calibrations.c.number == 2).values(document={"form": 2})
            await connection.execute(later)

    await show_all(config, as_json=False)
    table = capsys.readouterr().out
    await show_all(config, as_json=True)
    listed = json.loads(capsys.readouterr().out)["calibrations"]

    assert table.count("unreadable") == 1
    assert table.count("0.250") == 1
    assert [(one["number"], one["scope_floor"], one["made_by"]) for one in listed] == [
        (2, None, "somebody"),
        (1, 0.25, "somebody"),
    ]


def test_of_nobody_there_is_nothing_to_calibrate(tmp_path):
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path), "DISPATCHER_ENCODER__NAME": "hashing"}

    result = typed("fit", variables=variables)

    assert (result.returncode, result.stderr) == (
        1,
        "error: no agent is registered, so there is nothing to calibrate\n",
    )
