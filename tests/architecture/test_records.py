"""Records are frozen and name their members, and a request is made of nothing else (ADR 11)."""

import ast
from pathlib import Path

import pytest

from tests.architecture import tree

LIFECYCLE = [
    path for path in tree.python_files("dispatcher") if path.parent == Path("dispatcher/dispatch/lifecycle")
]


def bases(kind):
    return {base.id for base in kind.bases if isinstance(base, ast.Name)}


def records():
    """Every class that is a record, by its own base or by another record."""
    kinds = [
        kind
        for path in tree.python_files("dispatcher")
        for kind in ast.walk(tree.parsed(path))
        if isinstance(kind, ast.ClassDef)
    ]
    known = {"Struct"}
    while found := {kind.name for kind in kinds if bases(kind) & known} - known:
        known |= found
    return [kind for kind in kinds if bases(kind) & known]


@pytest.mark.parametrize("kind", records(), ids=lambda kind: kind.name)
def test_a_record_cannot_be_changed_and_names_its_members(kind):
    said = {word.arg: ast.unparse(word.value) for word in kind.keywords}

    assert said.get("frozen") == said.get("kw_only") == "True"


@pytest.mark.parametrize("path", LIFECYCLE, ids=str)
def test_what_a_request_is_made_of_are_records(path):
    assert "dataclasses" not in set(tree.imported(path))
