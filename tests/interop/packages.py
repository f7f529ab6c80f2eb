"""What the tests take from npm: a client in another language, and published schemas.

`make setup` installs it where there is Node; without it tests skip locally and fail where CI=true.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.services.environment import is_ci

FOLDER = Path(__file__).parent / "node"
"""Where package.json, its lock and the scripts are."""


def missing() -> str | None:
    """What is not there, and how to get it."""
    if not shutil.which("node"):
        return "there is no `node` (18 or newer) on the path"
    if not (FOLDER / "node_modules" / ".installed").is_file():
        return "tests/interop/node has no node_modules; run `make setup` with npm on the path"
    return None


def require() -> None:
    """Return where Node and the packages are; else skip, or fail in CI."""
    if reason := missing():
        (pytest.fail if is_ci() else pytest.skip)(reason)


def packaged(path: str) -> Any:
    """A JSON file of an installed package."""
    require()
    return json.loads((FOLDER / "node_modules" / path).read_text(encoding="utf-8"))
