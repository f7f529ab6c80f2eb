"""Rows that a calibration is fitted on: texts that somebody judged, as the product ranks them. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.rows import RequestRow, capability_names, request_rows, same_text
from dispatcher.tuning.decisions.labels import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A text's best capability, its contrastive score, and what it asks for; nothing if out of scope.

    Neither winner nor score depends on a calibration.
    """

    wanted: frozenset[Capability]
    winner: Capability | None
    score: float

    @property
    def is_right(self) -> bool:
        """Whether the winner is one of those asked for."""
        return self.winner in self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The rows that can be fitted on, and how many were left out for which reason."""

    rows: Sequence[RequestRow]
    left_out: Mapping[str, int]


def read_labelled(text: str, file: str, registered: Collection[Capability]) -> Sequence[RequestRow]:
    """The lines of a file in the form of an evaluation set; `agents` are names of capabilities.

    A name in another writing (`Card_Arrival`) stands for the registered one that a data set's would.
    Raises RequestError naming the line that is none.
    """
    return request_rows(text, file, {name: _known(name, registered) for name in _names(text)})


def of_labels(labels: Iterable[Label]) -> Iterator[RequestRow]:
    """What people said of past decisions, as rows."""
    for label in labels:
        wanted = frozenset[Capability]() if label.capability is None else frozenset({label.capability})
        yield RequestRow(text=label.text.strip(), language=label.language, wanted=wanted)


def choose_rows(
    rows: Iterable[RequestRow], registered: Collection[Capability], examples: Collection[str]
) -> Chosen:
    """Rows for one thing that is registered, or for nothing; each text once, as it was judged last.

    `examples` are the registered texts: what routing was made from shows nothing about it. A text that is
    there twice would be measured on itself. Texts are the same as `rows.same_text` has it.
    """
    known = frozenset(map(same_text, examples))
    left_out: Counter[str] = Counter()
    chosen: dict[str, RequestRow] = {}
    for row in rows:
        key = same_text(row.text)
        reason = "registered as an example" if key in known else _flaw(row, registered)
        if reason is not None:
            left_out[reason] += 1
            continue
        if chosen.pop(key, None) is not None:
            left_out["same text again"] += 1
        chosen[key] = row
    return Chosen(rows=tuple(chosen.values()), left_out=dict(sorted(left_out.items())))


def _flaw(row: RequestRow, registered: Collection[Capability]) -> str | None:
    if row.has_parts:
        return "message of several wishes"
    return None if all(one in registered for one in row.wanted) else "capability is not registered"


def _names(text: str) -> Iterator[str]:
    """Every name in the lines; what is no line of a data set is `request_rows`' to refuse."""
    for line in text.split("\n"):
        try:
            found = orjson.loads(line)["agents"]
        except (orjson.JSONDecodeError, TypeError, KeyError):
            continue
        yield from (one.strip() for one in (found if isinstance(found, list) else ()) if isinstance(one, str))


def _known(name: str, registered: Collection[Capability]) -> Capability:
    return Capability(name) if name in registered else capability_names([name])[name]
