"""What is exported of texts that people judged more than once."""

import json

import pytest

from tests.cli.typed import typed
from tests.scenario.program import Program, dispatcher, run

TWICE, REVOKED = "我的订单到哪一步了", "where is my order"


@pytest.fixture
def variables(tmp_path):
    return {"DISPATCHER_DATA_DIR": str(tmp_path), "DISPATCHER_ENCODER__NAME": "hashing"}


@pytest.fixture
def url(variables):
    """A running dispatcher."""
    start = dispatcher("run", "--development", "--port", "0", "--agent", "agents.order:agent")
    with Program(*start, variables=variables) as program:
        yield program.wait_for(r"listening on (http://\S+)")[1]


def _post(url, body):
    answer = run("curl", "-sf", url, "-H", "Content-Type: application/json", "-d", json.dumps(body))
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_each_text_is_one_row_as_it_was_judged_last_or_none_where_that_was_revoked(url, variables, tmp_path):
    said = [
        (TWICE, {"verdict": "out_of_scope"}),
        (REVOKED, {"verdict": "out_of_scope"}),
        (TWICE, {"verdict": "right"}),
        (REVOKED, {"verdict": "wrong_capability"}),
    ]
    for text, judgement in said:
        request_id = _post(f"{url}/v1/chat", {"message": text})["request_id"]
        path = f"{url}/v1/requests/{request_id}/feedback"
        _post(path, {"judgements": [{"position": 0, **judgement}]})
    file = tmp_path / "labelled.jsonl"

    written = typed("export", "labelled", "--out", str(file), variables=variables)

    assert written.returncode == 0, written.stderr
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(row["text"], row["agents"]) for row in rows] == [(TWICE, ["order.query"])]
    assert "2 left out: same text again" in written.stdout
    assert "1 left out: wrong, and nobody said what is right" in written.stdout
