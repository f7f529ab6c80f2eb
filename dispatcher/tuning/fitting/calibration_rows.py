"""Rows that a calibration is fitted on: texts that somebody judged, as the product ranks them. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson

from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.rows import RequestRow, capability_names, request_rows, same_text
from dispatcher.tuning.decisions.labels import Label

UNLABELLED = "not labelled yet"
AGAIN = "same text again"
REVOKED = "wrong, and nobody said what is right"
"""Reasons why a judgement is no row; see `docs/tuning.md`."""

Item = TypeVar("Item")
Twins = Collection[tuple[Capability, Capability]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A text's best capability, its contrastive score, and what it asks for; nothing if out of scope.

    Neither winner nor score depends on a calibration. What is a twin of something asked for is asked for
    too: which of the two wins is all the same for scope.
    """

    wanted: frozenset[Capability]
    winner: Capability | None
    score: float

    @property
    def is_right(self) -> bool:
        """Whether the winner is one of those asked for."""
        return self.winner in self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements:
    """Texts as somebody judged them, in that order, and how many were left out for which reason."""

    rows: Sequence[RequestRow]
    left_out: Mapping[str, int]


def read_labelled(text: str, file: str, registered: Collection[Capability]) -> Judgements:
    """The lines of a file in the form of an evaluation set; `agents` are names of capabilities.

    A name in another writing (`Card_Arrival`) stands for the registered one that a data set's would. Lines
    where `agents` is null wait for their label, as `export unsure` writes them. Raises RequestError naming
    the line that is none.
    """
    lines = text.split("\n")
    # Emptied instead of removed, so that the others keep their numbers.
    labelled = ["" if _is_unlabelled(line) else line for line in lines]
    left_out = sum(old != new for old, new in zip(lines, labelled, strict=True))
    rows = request_rows(
        "\n".join(labelled), file, {name: _known(name, registered) for name in _names(labelled)}
    )
    return Judgements(rows=rows, left_out={UNLABELLED: left_out} if left_out else {})


def of_labels(labels: Iterable[Label]) -> Judgements:
    """What people said of past decisions, as rows: each text once, as it was judged last, or not at all."""
    last: dict[str, Label] = {}
    left_out: Counter[str] = Counter()
    for label in labels:
        left_out[AGAIN] += _put_last(last, label.text, label)
    rows = [_row_of(label) for label in last.values() if label.teaches]
    left_out[REVOKED] = len(last) - len(rows)
    return Judgements(rows=rows, left_out={reason: count for reason, count in left_out.items() if count})


def choose_rows(
    judgements: Judgements, registered: Collection[Capability], examples: Collection[str]
) -> Judgements:
    """Rows for one thing that is registered, or for nothing; each text once, as it was judged last.

    `examples` are the registered texts: what routing was made from shows nothing about it. A text that is
    there twice would be measured on itself; what was said of it before stands no longer, also where what
    was said last can't be fitted on. Texts are the same as `rows.same_text` has it.
    """
    known = frozenset(map(same_text, examples))
    left_out = Counter(judgements.left_out)
    last: dict[str, RequestRow] = {}
    for row in judgements.rows:
        left_out[AGAIN] += _put_last(last, row.text, row)
    chosen = []
    for key, row in last.items():
        reason = "registered as an example" if key in known else _flaw(row, registered)
        if reason is None:
            chosen.append(row)
        else:
            left_out[reason] += 1
    return Judgements(
        rows=tuple(chosen), left_out={reason: count for reason, count in sorted(left_out.items()) if count}
    )


def widened(wanted: frozenset[Capability], twins: Twins) -> frozenset[Capability]:
    """What is wanted with the twins of it, as `routing.leave_one_out` counts them."""
    beside = {other for pair in twins if wanted.intersection(pair) for other in pair}
    return wanted | beside


def _put_last(last: dict[str, Item], text: str, item: Item) -> bool:
    """Keep what was said last, in last place; whether something was said of the text before."""
    key = same_text(text)
    is_again = last.pop(key, None) is not None
    last[key] = item
    return is_again


def _row_of(label: Label) -> RequestRow:
    wanted = frozenset[Capability]() if label.capability is None else frozenset({label.capability})
    return RequestRow(text=label.text.strip(), language=label.language, wanted=wanted)


def _flaw(row: RequestRow, registered: Collection[Capability]) -> str | None:
    if row.has_parts:
        return "message of several wishes"
    return None if all(one in registered for one in row.wanted) else "capability is not registered"


def _names(lines: Iterable[str]) -> Iterator[str]:
    """Every name in the lines; what is no line of a data set is `request_rows`' to refuse."""
    for line in lines:
        found = _agents(line)
        yield from (one.strip() for one in (found if isinstance(found, list) else ()) if isinstance(one, str))


def _is_unlabelled(line: str) -> bool:
    return _agents(line) is None


def _agents(line: str) -> object:
    """The member `agents`; an empty list where there is none."""
    try:
        found: object = orjson.loads(line)["agents"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return []
    return found


def _known(name: str, registered: Collection[Capability]) -> Capability:
    return Capability(name) if name in registered else capability_names([name])[name]
