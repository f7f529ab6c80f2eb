"""The project as files: what the architecture tests look at."""

import ast
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OURS = ("dispatcher", "agents")
"""Our import packages."""


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project relative to its root: what git tracks or would, without what it ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(
        sorted(path for name in set(listed.split("\0")) - {""} if (ROOT / (path := Path(name))).is_file())
    )


def python_files(*folders: str) -> tuple[Path, ...]:
    """The Python files of some top-level folders, or of all."""
    return tuple(
        path for path in files() if path.suffix == ".py" and (not folders or path.parts[0] in folders)
    )


def modules() -> tuple[str, ...]:
    """The import names of all our modules."""
    names = (".".join(path.with_suffix("").parts) for path in python_files(*OURS))
    return tuple(name.removesuffix(".__init__") for name in names)


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path) -> Iterator[str]:
    """The full names of the modules that a file imports, wherever in the file."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@cache
def project() -> dict[str, Any]:
    """pyproject.toml as it is read by tools."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def lines(path: Path) -> list[str]:
    """The lines of a text file."""
    return (ROOT / path).read_text(encoding="utf-8").splitlines()
