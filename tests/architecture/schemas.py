"""The published JSON Schemas of the wire: `docs/schemas/FRAME.json`, rendered from the frames.

`python -m tests.architecture.schemas` says which files differ; with `--write` it writes them.
"""

import json
import sys
from pathlib import Path

from dispatcher.protocol.frames import wire_schemas
from tests.architecture.tree import ROOT

FOLDER = ROOT / "docs" / "schemas"


def rendered() -> dict[Path, str]:
    """What each file should hold."""
    return {
        FOLDER / f"{name}.json": json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for name, schema in wire_schemas().items()
    }


def differing() -> list[str]:
    """Names of files that are missing, left over or not as the frames say."""
    wanted = rendered()
    present = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    return sorted(
        path.name for path in wanted.keys() | present.keys() if wanted.get(path) != present.get(path)
    )


def write() -> None:
    """Make the files what the frames say."""
    FOLDER.mkdir(exist_ok=True)
    for path in set(FOLDER.glob("*.json")) - rendered().keys():
        path.unlink()
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    if stale := differing():
        sys.exit(f"docs/schemas differs from the frames: {', '.join(stale)} (make docs ARGS=--write)")
