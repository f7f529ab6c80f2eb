import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.routing.decision import Rejection
from dispatcher.tuning.decisions.decision_log import entry_line, read_entries
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, candidate, decision, entry

NEXT = candidate("x", "exchange", Rejection.OTHER_CAPABILITY, cosine=0.45)


def test_what_is_written_is_read_back_the_same(tmp_path):
    entries = [
        entry(decision(BUSY_BUT_GOOD, IDLE)),
        entry(decision(BUSY_BUT_GOOD, NEXT), verdict="wrong_capability"),
    ]
    file = tmp_path / "decisions.jsonl"
    file.write_bytes(b"".join(map(entry_line, entries)))

    assert list(read_entries(file)) == entries


def test_the_margin_is_to_the_best_other_capability():
    assert entry(decision(BUSY_BUT_GOOD, IDLE, NEXT)).margin == pytest.approx(0.15)
    assert entry(decision(BUSY_BUT_GOOD, IDLE)).margin is None
    assert entry(decision()).margin is None


def test_the_margin_is_that_of_the_text_itself_whoever_got_it():
    made = decision(
        candidate("net", "ask.anything", cosine=0.0),
        capability="ask.anything",
        winner="refund",
        refused_for="below_scope_floor",
        own_similarity=0.3,
        own_candidates=(BUSY_BUT_GOOD._replace(rejection=Rejection.BELOW_SCOPE_FLOOR), NEXT),
    )

    assert entry(made).margin == pytest.approx(0.15)


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"request_id": "r1"', b'{"decision": 3}', b"null"])
def test_a_line_that_is_no_decision_is_named(tmp_path, line):
    file = tmp_path / "decisions.jsonl"
    file.write_bytes(entry_line(entry(decision(BUSY_BUT_GOOD))) + line + b"\n")

    with pytest.raises(ConfigurationError, match="line 2 of"):
        list(read_entries(file))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nothing\.jsonl"):
        list(read_entries(tmp_path / "nothing.jsonl"))
