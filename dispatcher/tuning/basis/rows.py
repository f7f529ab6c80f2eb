"""The lines of a data set as frozen rows; the format is in docs/tuning.md. Pure: texts in, rows out.

Every flaw is a RequestError with code `invalid_dataset` that names file and line, and never the text there:
only the name of an agent that is not there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import orjson

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.routing.prepared import prepared

LONGEST_NAME = 64
LONGEST_SENTENCE = 500
MOST_DESCRIPTIONS = 4
MOST_EXAMPLES = 20
"""Limits of a declaration, see `dispatcher.protocol.declaration`."""
UNKNOWN_LANGUAGE = "und"

_FOREIGN = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One agent with one capability. Texts are stripped and cut to LONGEST_SENTENCE characters.

    `shortened` counts the texts that were longer.
    """

    source_id: str
    descriptions: tuple[str, ...]
    examples: tuple[str, ...]
    shortened: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One request and every capability that it asks for: none where it is out of scope.

    `has_parts` says that its row names the clauses of a message of several wishes.
    """

    text: str
    language: str
    wanted: frozenset[Capability]
    has_parts: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """One object of a JSONL file and where it stands."""

    values: Mapping[str, object]
    place: str

    def flaw(self, what: str) -> RequestError:
        return RequestError(f"{self.place}: {what}", code="invalid_dataset")

    def text(self, name: str) -> str:
        found = self.values.get(name)
        if not isinstance(found, str) or not found.strip():
            raise self.flaw(f"{name!r} must be a text")
        return found.strip()

    def texts(self, name: str) -> list[str]:
        """Empty ones are left out."""
        found = self.values.get(name, [])
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.flaw(f"{name!r} must be a list of texts")
        return [one.strip() for one in found if one.strip()]


def agent_rows(text: str, file: str) -> tuple[AgentRow, ...]:
    """The agents of a file, whose name is given for errors; at least one, no id twice."""
    rows: dict[str, AgentRow] = {}
    for line in _lines(text, file):
        row = _agent_row(line)
        if row.source_id in rows:
            raise line.flaw("this 'id' is there twice")
        rows[row.source_id] = row
    if not rows:
        raise RequestError(f"{file} holds no agents", code="invalid_dataset")
    return tuple(rows.values())


def request_rows(text: str, file: str, names: Mapping[str, Capability]) -> tuple[RequestRow, ...]:
    """The requests of a file; `names` has the capability of each agent's id."""
    return tuple(_request_row(line, names) for line in _lines(text, file))


def same_text(text: str) -> str:
    """A key of texts that routing reads as one, see `routing.prepared`, or that differ in case only."""
    return prepared(text).casefold()


def unregistered_rows(
    rows: Iterable[RequestRow], *registries: Mapping[Capability, AgentRow]
) -> tuple[RequestRow, ...]:
    """The rows whose text no agent of any of these registries has as a description or example.

    What routing was made from shows nothing about it. Texts are the same as `same_text` has it.
    """
    known = {
        same_text(text)
        for agents in registries
        for agent in agents.values()
        for text in (*agent.descriptions, *agent.examples)
    }
    return tuple(row for row in rows if same_text(row.text) not in known)


def repeats(rows: Iterable[RequestRow]) -> int:
    """How many of the rows have the text of an earlier one."""
    keys = [same_text(row.text) for row in rows]
    return len(keys) - len(set(keys))


def capability_names(ids: Iterable[str]) -> dict[str, Capability]:
    """A capability name for each id: lowercased, what names can't hold replaced, no name twice."""
    names: dict[str, Capability] = {}
    taken: set[str] = set()
    for one in ids:
        plain = _FOREIGN.sub("-", one.lower()).strip("._-")[:LONGEST_NAME] or "capability"
        tries = chain([plain], (f"{plain[:56]}.{number}" for number in count(2)))
        names[one] = Capability(next(name for name in tries if name not in taken))
        taken.add(names[one])
    return names


def renamed(names: Mapping[str, Capability]) -> dict[str, str]:
    """Those of the names that are not just the id in lower case."""
    return {one: name for one, name in names.items() if name != one.lower()}


def with_examples(row: AgentRow, limit: int, more: Sequence[str]) -> AgentRow:
    """The agent with its first `limit` examples, filled up from `more` where it has fewer."""
    own = dict.fromkeys(row.examples)
    chosen = [*own, *(text for text in _cut(more) if text not in own)][:limit]
    return AgentRow(
        source_id=row.source_id,
        descriptions=row.descriptions,
        examples=tuple(chosen),
        shortened=row.shortened,
    )


def _lines(text: str, file: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            values = orjson.loads(line)
        except orjson.JSONDecodeError:
            values = None
        if not isinstance(values, dict):
            raise RequestError(f"{place}: not a JSON object", code="invalid_dataset")
        yield _Line(values, place)


def _agent_row(line: _Line) -> AgentRow:
    named = [name for name in line.values if name.startswith("desc_")]
    described = [line.text(name) for name in named if not _is_blank(line.values[name])]
    if not 1 <= len(described) <= MOST_DESCRIPTIONS:
        raise line.flaw(f"1 to {MOST_DESCRIPTIONS} descriptions ('desc_en', 'desc_zh', ...) are needed")
    examples = line.texts("examples")
    return AgentRow(
        source_id=line.text("id"),
        descriptions=_cut(described),
        examples=_cut(examples),
        shortened=sum(len(text) > LONGEST_SENTENCE for text in (*described, *examples)),
    )


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _request_row(line: _Line, names: Mapping[str, Capability]) -> RequestRow:
    if "agents" not in line.values:
        raise line.flaw("'agents' is missing; an empty list means out of scope")
    wanted = line.texts("agents")
    strange = next((one for one in wanted if one not in names), None)
    if strange is not None:
        raise line.flaw(f"'agents' names {strange[:LONGEST_NAME]!r}, which is not among the agents")
    return RequestRow(
        text=line.text("text"),
        language=line.text("lang") if "lang" in line.values else UNKNOWN_LANGUAGE,
        wanted=frozenset(names[one] for one in wanted),
        has_parts="parts" in line.values,
    )


def _cut(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[:LONGEST_SENTENCE].strip() for text in texts)
