"""Decisions outside the database: one JSON object a line, complete enough to be decided again.

`dispatcher export decisions` writes them, notebooks and `dispatcher replay --from` read them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import RequestId
from dispatcher.routing.decision import Decision
from dispatcher.routing.record import decision_document, read_decision
from dispatcher.tuning.decisions.replay import StoredDecision, of_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored decision, how its task ended and what people said; see `store.history.Past`."""

    stored: StoredDecision
    language: str
    environment: str
    status: str | None
    verdict: str | None
    right_capability: str | None

    @property
    def decision(self) -> Decision:
        """What was decided."""
        return self.stored.decision

    @property
    def text(self) -> str:
        """What was ranked; a follow-up goes with what was said before it."""
        return self.decision.ranked_text or self.decision.text

    @property
    def margin(self) -> float | None:
        """How far the best cosine of the text's winning capability is above the next capability's."""
        best, own_decision = dict[str, float](), of_text(self.decision)
        for one in own_decision.candidates:
            best[one.capability] = max(one.cosine, best.get(one.capability, -1.0))
        own = best.pop(own_decision.capability or "", None)
        return None if own is None or not best else own - max(best.values())


def entry_line(entry: Entry) -> bytes:
    """The entry as one line of JSON, ending in a newline."""
    stored = entry.stored
    document = {
        "request_id": stored.request_id,
        "position": stored.position,
        "recorded_ms": stored.recorded_ms,
        "language": entry.language,
        "environment": entry.environment,
        "status": entry.status,
        "verdict": entry.verdict,
        "right_capability": entry.right_capability,
        "decision": orjson.Fragment(decision_document(stored.decision)),
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def read_entries(file: Path) -> Iterator[Entry]:
    """The entries of a file; raises ConfigurationError naming the line that is none."""
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield read_entry(line, file, number)
    except OSError as error:
        raise ConfigurationError(f"{str(file)!r} can't be read: {error.strerror}") from None


def read_entry(line: bytes | str, file: Path, number: int) -> Entry:
    """The entry of one line of a file; raises ConfigurationError naming both."""
    try:
        row: Mapping[str, Any] = orjson.loads(line)
        stored = StoredDecision(
            request_id=RequestId(row["request_id"]),
            position=row["position"],
            recorded_ms=row["recorded_ms"],
            decision=read_decision(orjson.dumps(row["decision"]).decode()),
        )
        return Entry(
            stored=stored,
            language=row["language"],
            environment=row["environment"],
            status=row["status"],
            verdict=row["verdict"],
            right_capability=row["right_capability"],
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigurationError(f"line {number} of {str(file)!r} is no exported decision") from None
