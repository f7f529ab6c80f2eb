"""Every notebook runs from a clean kernel, and what is committed is what such a run gives."""

import ast
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.scenario.program import ROOT, run

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MACHINE_PATHS = (str(ROOT), str(Path.home()), sys.prefix, tempfile.gettempdir())
ANY_PATH = re.compile(r"(?<![\w.:/])/(?:home|root|Users|tmp|var|opt|usr|private|mnt|work)/|\b[A-Z]:\\")
FOLDERS = ("notebooks", ".")
"""Where kernels start, in turn: Jupyter takes the notebook's folder, an editor often the repository."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")
ROUNDING = 0.0101
LONGEST_FUNCTION = 10
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    """The notebook in today's format, checked against its schema."""
    notebook = nbformat.read(path, as_version=nbformat.current_nbformat)
    nbformat.validate(notebook)
    return notebook


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> Iterator[Any]:
    for cell in code_cells(notebook):
        yield from cell.outputs


def shown(notebook: Any, kind: str) -> list[str]:
    """All outputs of a media type."""
    return [output.data[kind] for output in outputs(notebook) if kind in output.get("data", {})]


def texts(notebook: Any) -> Iterator[str]:
    """Everything in a notebook that a person can read: sources, metadata, outputs that are no picture."""
    yield str(notebook.metadata)
    for cell in notebook.cells:
        yield cell.source
        yield str(cell.metadata)
    for output in outputs(notebook):
        yield "\n".join(output.get("traceback", ()))
        yield output.get("text", "")
        yield from (text for kind, text in output.get("data", {}).items() if not kind.startswith("image/"))


def functions(notebook: Any) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for cell in code_cells(notebook):
        tree = compile(cell.source, "cell", "exec", flags=flags)
        yield from (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def assert_it_answers(notebook: Any) -> None:
    """No cell failed or warned, and there are a table and a plot to look at."""
    assert [cell.execution_count for cell in code_cells(notebook)] == list(
        range(1, len(code_cells(notebook)) + 1)
    )
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    assert any("<table" in page for page in shown(notebook, "text/html"))
    assert shown(notebook, "image/png")


def printed(notebook: Any) -> list[str]:
    """The tables, lines and sentences that it shows, as text."""
    found = [output.get("text", "") for output in outputs(notebook)]
    for kind in ("text/plain", "text/markdown"):
        found += [text for text in shown(notebook, kind) if not text.startswith("<")]
    return found


def assert_the_same(fresh: list[str], stored: list[str]) -> None:
    """The same words and counts; shares as near as two processors' arithmetic is."""
    assert len(fresh) == len(stored)
    for one, other in zip(fresh, stored, strict=True):
        assert NUMBER.sub("#", one).split() == NUMBER.sub("#", other).split()
        numbers = [[float(number) for number in NUMBER.findall(text)] for text in (one, other)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0, abs=ROUNDING)


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


@every_notebook
@pytest.mark.timeout(150)
def test_a_clean_kernel_gives_what_is_committed(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    folder = ROOT / FOLDERS[NOTEBOOKS.index(path) % len(FOLDERS)]

    # In a process of its own, as the kernel's packages still use what Python deprecates.
    command = (sys.executable, "-m", "tests.notebooks.execute", str(path), str(copy), str(folder))
    result = run(*command, seconds=140)

    assert result.returncode == 0, result.stderr
    executed = read(copy)
    assert_it_answers(executed)
    assert_the_same(printed(executed), printed(read(path)))


@pytest.mark.parametrize(
    ("fresh", "stored"),
    [(["top1 0.77"], ["top1 0.80"]), (["12 texts"], ["13 texts"]), (["kept"], ["left"]), ([], ["a table"])],
)
def test_other_numbers_or_words_are_noticed(fresh: list[str], stored: list[str]) -> None:
    with pytest.raises(AssertionError):
        assert_the_same(fresh, stored)


@every_notebook
def test_its_committed_outputs_are_those_of_one_run_without_warnings(path: Path) -> None:
    notebook = read(path)

    assert_it_answers(notebook)
    assert not [output for output in outputs(notebook) if output.get("name") == "stderr"]


@every_notebook
def test_it_names_no_path_of_a_machine(path: Path) -> None:
    committed = list(texts(read(path)))

    assert not [text for text in committed if any(place in text for place in MACHINE_PATHS)]
    assert not [text for text in committed if ANY_PATH.search(text)]


@every_notebook
def test_its_functions_are_short(path: Path) -> None:
    found = list(functions(read(path)))

    assert not [f.name for f in found if (f.end_lineno or 0) - f.lineno + 1 > LONGEST_FUNCTION]
