"""Rows as tables for people."""

import io

import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.tuning.analysis.frame import (
    comparison_frame,
    decisions_frame,
    read_frame,
    table,
    write_parquet,
)
from dispatcher.tuning.basis.metrics import share
from dispatcher.tuning.decisions.comparison import compare
from dispatcher.tuning.decisions.replay import Terms
from dispatcher.tuning.decisions.terms import change_terms
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, decision, entry, stored


def test_a_figure_is_shown_with_its_interval_and_nothing_as_a_dash():
    shown = table([{"floor": 0.35, "precision": share(1, 2), "best": None, "count": 3}])

    assert shown.index.tolist() == ["0.35"]
    assert shown["precision"].tolist() == ["0.50 (0.09 to 0.91)"]
    assert shown["best"].tolist() == ["-"]
    assert shown["count"].tolist() == [3]


def test_no_rows_are_an_empty_table():
    assert table([]).empty


def replayed(*decisions):
    return comparison_frame(
        compare(stored(*decisions), Terms(), change_terms(Terms(), ["weights.headroom=0.5"]))
    )


def test_a_comparison_is_a_frame_of_who_took_what():
    (row,) = replayed(decision(BUSY_BUT_GOOD, IDLE)).to_dict("records")

    assert (row["request_id"], row["position"], row["text"]) == ("r0", 0, "refund me")
    assert (row["change"], row["agent_before"], row["agent_after"]) == ("moved", "good", "idle")
    assert (row["load_before"], row["load_after"]) == pytest.approx((0.8, 0.4))
    assert (row["success_before"], row["success_after"]) == (1.0, 0.7)
    assert (row["outcome_before"], row["capability"]) == ("selected", "refund")


def test_a_comparison_of_nothing_still_has_its_columns():
    frame = replayed()

    assert frame.empty
    assert {"change", "agent_before", "agent_after"} <= set(frame.columns)


def test_what_was_written_as_parquet_is_read_as_it_was(tmp_path):
    entries = [entry(decision(BUSY_BUT_GOOD, IDLE), verdict="right"), entry(decision(BUSY_BUT_GOOD))]
    written = io.BytesIO()

    assert write_parquet(entries, written) == 2
    (tmp_path / "decisions.parquet").write_bytes(written.getvalue())

    assert read_frame(tmp_path / "decisions.parquet") == entries


def test_what_is_no_exported_parquet_is_one_sentence(tmp_path):
    other, wrong = tmp_path / "other", tmp_path / "wrong"
    other.write_bytes(b"no parquet")
    decisions_frame([entry(decision(BUSY_BUT_GOOD))]).assign(document="{}").to_parquet(wrong)

    with pytest.raises(ConfigurationError, match="other' can't be read as exported decisions"):
        read_frame(other)
    with pytest.raises(ConfigurationError, match=r"line 1 of .*wrong' is no exported decision"):
        read_frame(wrong)
    with pytest.raises(ConfigurationError, match="can't be read"):
        read_frame(tmp_path / "nothing")
