"""How long modules and functions are. `python -m tests.architecture.size` lists those beyond the aim."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.architecture import tree

MODULE_AIM, MODULE_LIMIT = 250, 400
FUNCTION_AIM, FUNCTION_LIMIT = 20, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A module or function and its length in lines; a function's docstring does not count."""

    name: str
    length: int


def measured_files() -> tuple[Path, ...]:
    """All Python files but migrations and golden data, which are records rather than code to read."""
    return tuple(
        path for path in tree.python_files() if path.parts[0] != "migrations" and "golden" not in path.parts
    )


def modules() -> Iterator[Piece]:
    """Every module."""
    for path in measured_files():
        yield Piece(name=str(path), length=len(tree.lines(path)))


def functions() -> Iterator[Piece]:
    """Every function and method."""
    for path in measured_files():
        for node in ast.walk(tree.parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Piece(name=f"{path}:{node.lineno} {node.name}", length=_length(node))


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None:
        return total
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)


if __name__ == "__main__":
    beyond = [p for p in modules() if p.length > MODULE_AIM] + [
        p for p in functions() if p.length > FUNCTION_AIM
    ]
    for piece in sorted(beyond, key=lambda piece: -piece.length):
        print(f"{piece.length:4}  {piece.name}")
