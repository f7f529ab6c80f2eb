"""Decisions and comparisons as tables for notebooks; the one file that knows pandas (extra `notebooks`)."""

from collections.abc import Iterable, Mapping
from typing import IO

import pandas as pd  # type: ignore[import-untyped]

from dispatcher.tuning.basis.metrics import Figure
from dispatcher.tuning.decisions.comparison import Comparison
from dispatcher.tuning.decisions.decision_log import Entry, entry_line


def decisions_frame(entries: Iterable[Entry]) -> pd.DataFrame:
    """One row for each decision, `recorded` as UTC time; `document` is the whole entry as JSON."""
    return pd.DataFrame([_decision_row(entry) for entry in entries], columns=_COLUMNS).astype(
        {"recorded": "datetime64[ms, UTC]"}
    )


def comparison_frame(comparison: Comparison) -> pd.DataFrame:
    """One row for each decision: who took it before and after, and what changed."""
    rows = [
        {
            "request_id": row.stored.request_id,
            "position": row.stored.position,
            "text": row.stored.decision.text,
            "change": row.change.value,
            "outcome_before": row.before.outcome.value,
            "outcome_after": row.after.outcome.value,
            "agent_before": row.before.agent_id,
            "agent_after": row.after.agent_id,
            "capability": row.after.capability,
            "score_before": row.before.score,
            "score_after": row.after.score,
            "success_before": row.before.success,
            "success_after": row.after.success,
            "load_before": row.before.load,
            "load_after": row.after.load,
        }
        for row in comparison.rows
    ]
    return pd.DataFrame(rows)


def table(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Rows under their first value as a heading; a figure is shown with its interval, nothing as "-"."""
    frame = pd.DataFrame([{name: _shown(value) for name, value in row.items()} for row in rows])
    return frame.set_index(frame.columns[0]) if len(frame.columns) else frame


def write_parquet(entries: Iterable[Entry], file: IO[bytes]) -> int:
    """Write `decisions_frame` as Parquet; the number of decisions. All of them are in memory at once."""
    frame = decisions_frame(entries)
    frame.to_parquet(file, index=False)
    return len(frame)


_COLUMNS = [
    *("request_id", "position", "recorded", "language", "environment", "text", "outcome", "reason"),
    *("capability", "agent_id", "similarity", "score", "scope_score", "scope_floor", "margin"),
    *("success", "headroom", "candidates", "status", "verdict", "right_capability"),
    *("encoder_id", "registry_version", "calibration", "document"),
]


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
        if name in type(decision).__dataclass_fields__ and name != "candidates"
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
