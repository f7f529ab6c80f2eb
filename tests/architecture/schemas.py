"""The published contract with agents, rendered from the code that keeps it.

`docs/schemas/FRAME.json` is the JSON Schema of each frame, `docs/asyncapi.json` the whole protocol
over AMQP. `python -m tests.architecture.schemas` says which files differ; with `--write` it writes them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from dispatcher.protocol.asyncapi import asyncapi
from dispatcher.protocol.frames import wire_schemas
from dispatcher.protocol.handoff import handoff_schema
from tests.architecture.tree import ROOT

FOLDER = ROOT / "docs" / "schemas"
PROTOCOL = ROOT / "docs" / "asyncapi.json"


def rendered() -> dict[Path, str]:
    """What each file should hold."""
    published = {**wire_schemas(), "handoff": handoff_schema()}
    schemas = {FOLDER / f"{name}.json": _text(schema, sort_keys=True) for name, schema in published.items()}
    return {**schemas, PROTOCOL: _text(asyncapi())}


def _text(document: dict[str, Any], *, sort_keys: bool = False) -> str:
    return json.dumps(document, indent=2, sort_keys=sort_keys, ensure_ascii=False) + "\n"


def present() -> set[Path]:
    """The files there are."""
    return {*FOLDER.glob("*.json"), *filter(Path.is_file, [PROTOCOL])}


def differing() -> list[str]:
    """Names of files that are missing, left over or not as the code says."""
    wanted = rendered()
    found = {path: path.read_text(encoding="utf-8") for path in present()}
    return sorted(path.name for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))


def write() -> None:
    """Make the files what the code says."""
    FOLDER.mkdir(exist_ok=True)
    for path in present() - rendered().keys():
        path.unlink()
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    if stale := differing():
        sys.exit(f"docs/ differs from the protocol's code: {', '.join(stale)} (make docs ARGS=--write)")
