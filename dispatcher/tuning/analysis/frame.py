"""Decisions and comparisons as tables for notebooks; the one file that knows pandas (extra `notebooks`)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

import pandas as pd  # type: ignore[import-untyped]

from dispatcher.errors import ConfigurationError
from dispatcher.tuning.basis.metrics import Figure
from dispatcher.tuning.decisions.comparison import Compared, Comparison
from dispatcher.tuning.decisions.decision_log import Entry, entry_line, read_entry


def decisions_frame(entries: Iterable[Entry]) -> pd.DataFrame:
    """One row for each decision, `recorded` as UTC time; `document` is the whole entry as JSON."""
    return pd.DataFrame([_decision_row(entry) for entry in entries], columns=_COLUMNS).astype(
        {"recorded": "datetime64[ms, UTC]"}
    )


def comparison_frame(comparison: Comparison) -> pd.DataFrame:
    """One row for each decision that was kept: who took it before and after, and what changed."""
    return pd.DataFrame([_compared_row(row) for row in comparison.rows], columns=_COMPARED)


def table(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Rows under their first value as a heading; a figure is shown with its interval, nothing as "-"."""
    frame = pd.DataFrame([{name: _shown(value) for name, value in row.items()} for row in rows])
    return frame.set_index(frame.columns[0]) if len(frame.columns) else frame


def write_parquet(entries: Iterable[Entry], file: IO[bytes]) -> int:
    """Write `decisions_frame` as Parquet; the number of decisions. All of them are in memory at once."""
    frame = decisions_frame(entries)
    frame.to_parquet(file, index=False)
    return len(frame)


def read_frame(file: Path) -> list[Entry]:
    """The decisions that `write_parquet` wrote, as `read_entries` gives those of a JSONL file.

    Raises ConfigurationError where the file is none, or a row no exported decision.
    """
    try:
        documents = pd.read_parquet(file, columns=["document"])["document"]
    except (OSError, ValueError, KeyError) as error:
        sentence = f"{str(file)!r} can't be read as exported decisions in Parquet ({type(error).__name__})"
        raise ConfigurationError(sentence) from None
    return [read_entry(str(line), file, number) for number, line in enumerate(documents, 1)]


_COLUMNS = [
    *("request_id", "position", "recorded", "language", "environment", "text", "outcome", "reason"),
    *("capability", "agent_id", "similarity", "score", "scope_score", "scope_floor", "margin"),
    *("success", "headroom", "candidates", "status", "verdict", "right_capability"),
    *("encoder_id", "registry_version", "calibration", "document"),
]


_COMPARED = [
    *(
        "request_id",
        "position",
        "recorded",
        "text",
        "similarity",
        "change",
        "outcome_before",
        "outcome_after",
    ),
    *("agent_before", "agent_after", "capability", "score_before", "score_after"),
    *("success_before", "success_after", "load_before", "load_after"),
]


def _compared_row(row: Compared) -> dict[str, object]:
    sides = {
        f"{name}_{side}": getattr(choice, field)
        for side, choice in (("before", row.before), ("after", row.after))
        for name, field in (("agent", "agent_id"), ("score",) * 2, ("success",) * 2, ("load",) * 2)
    }
    return sides | {
        "request_id": row.stored.request_id,
        "position": row.stored.position,
        "recorded": pd.Timestamp(row.stored.recorded_ms, unit="ms", tz="UTC"),
        "text": row.stored.decision.text,
        "similarity": row.stored.decision.similarity,
        "change": row.change.value,
        "outcome_before": row.before.outcome.value,
        "outcome_after": row.after.outcome.value,
        "capability": row.after.capability,
    }


def _shown(value: object) -> object:
    if isinstance(value, Figure):
        return f"{value.value:.2f} ({value.low:.2f} to {value.high:.2f})"
    if isinstance(value, float):
        return f"{value:.2f}"
    return "-" if value is None else value


def _decision_row(entry: Entry) -> dict[str, object]:
    decision, stored = entry.decision, entry.stored
    chosen = next((one for one in decision.candidates if one.rejection is None), None)
    row = {
        name: getattr(decision, name)
        for name in _COLUMNS
        if name in decision.__struct_fields__ and name != "candidates"
    }
    return row | {
        "request_id": stored.request_id,
        "position": stored.position,
        "recorded": pd.Timestamp(stored.recorded_ms, unit="ms", tz="UTC"),
        "language": entry.language,
        "environment": entry.environment,
        "outcome": decision.outcome.value,
        "margin": entry.margin,
        "success": chosen.success if chosen else None,
        "headroom": chosen.headroom if chosen else None,
        "candidates": len(decision.candidates),
        "status": entry.status,
        "verdict": entry.verdict,
        "right_capability": entry.right_capability,
        "document": entry_line(entry).decode(),
    }
