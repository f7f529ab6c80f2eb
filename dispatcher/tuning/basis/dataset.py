"""Reads a data set's folder; the format is in docs/tuning.md."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.rows import (
    AgentRow,
    RequestRow,
    agent_rows,
    capability_names,
    renamed,
    repeats,
    request_rows,
    unregistered_rows,
    with_examples,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Agents, requests for one thing at a time, and messages with several wishes.

    `agents` is by capability. `renamed` has the name of each id that can't be a capability's,
    `files` the SHA-256 (hex, first 16 characters) of each file that was read.
    """

    name: str
    agents: Mapping[Capability, AgentRow]
    requests: tuple[RequestRow, ...]
    messages: tuple[RequestRow, ...]
    renamed: Mapping[str, str]
    files: Mapping[str, str]

    @property
    def examples(self) -> int:
        """Examples of all agents."""
        return sum(len(row.examples) for row in self.agents.values())

    @property
    def texts(self) -> int:
        """Requests and messages."""
        return len(self.requests) + len(self.messages)

    @property
    def repeated_texts(self) -> int:
        """Requests that ask an earlier one's text, and messages that do; `rows.same_text` says which do."""
        return repeats(self.requests) + repeats(self.messages)

    @property
    def shortened(self) -> int:
        """Texts that were longer than a declaration may hold, and were cut."""
        return sum(row.shortened for row in self.agents.values())


def read_dataset(folder: Path, *, agents: Path | None = None, examples: int | None = None) -> Dataset:
    """Read a folder; `agents` names the file of another set's agents.

    With `examples` each agent gets so many: its own, then those of the `pool.jsonl` beside the
    agents' file. Raises RequestError with one sentence.
    """
    if not folder.is_dir():
        raise _refused(f"the data set {str(folder)!r} is not a folder")
    files: dict[str, str] = {}
    source = agents or folder / "agents.jsonl"
    if agents is None and not source.is_file():
        raise _refused(f"{str(folder)!r} has no agents.jsonl; name another set's with --agents")
    rows = agent_rows(_read(source, files), str(source))
    names = capability_names(row.source_id for row in rows)
    pool = _pool(source.parent / "pool.jsonl", files, names) if examples is not None else {}
    found = _requests(folder / "eval.jsonl", files, names)
    several = _requests(folder / "multi.jsonl", files, names) if (folder / "multi.jsonl").exists() else ()
    return Dataset(
        name=folder.resolve().name,
        agents={
            names[row.source_id]: row
            if examples is None
            else with_examples(row, examples, pool.get(names[row.source_id], ()))
            for row in rows
        },
        requests=tuple(row for row in found if not row.has_parts),
        messages=(*(row for row in found if row.has_parts), *several),
        renamed=renamed(names),
        files=files,
    )


def unregistered(dataset: Dataset) -> Dataset:
    """The set without requests and messages whose text an agent registered."""
    requests, messages = (
        unregistered_rows(rows, dataset.agents) for rows in (dataset.requests, dataset.messages)
    )
    return replace(dataset, requests=requests, messages=messages)


def _requests(file: Path, files: dict[str, str], names: Mapping[str, Capability]) -> tuple[RequestRow, ...]:
    return request_rows(_read(file, files), str(file), names)


def _pool(
    file: Path, files: dict[str, str], names: Mapping[str, Capability]
) -> Mapping[Capability, Sequence[str]]:
    """Further examples of each capability: the requests for it alone."""
    texts: dict[Capability, list[str]] = defaultdict(list)
    if file.exists():
        for row in _requests(file, files, names):
            if len(row.wanted) == 1:
                texts[next(iter(row.wanted))].append(row.text)
    return texts


def _read(file: Path, files: dict[str, str]) -> str:
    try:
        content = file.read_bytes()
        text = content.decode()
    except OSError as error:
        raise _refused(f"the file {str(file)!r} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _refused(f"the file {str(file)!r} is not UTF-8") from None
    # The folder beside the name: two sets' files may have the same.
    files[f"{file.resolve().parent.name}/{file.name}"] = hashlib.sha256(content).hexdigest()[:16]
    return text


def _refused(sentence: str) -> RequestError:
    return RequestError(sentence, code="invalid_dataset")
