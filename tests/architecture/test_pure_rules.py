"""Pure rules are decided by their arguments alone, and are held to full branch coverage (`make test`)."""

import ast
import sys
from pathlib import Path

import pytest

from tests.architecture import tree

LISTED = [Path(name) for name in tree.project()["tool"]["coverage"]["run"]["include"]]
ROOMS_OF_RULES = ("dispatch", "intents", "registry", "routing")
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "contextvars",
        "http",
        "importlib",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "queue",
        "secrets",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
    }
)
"""Parts of the standard library through which a rule could see or change the world."""
ALLOWED = (sys.stdlib_module_names - IMPURE) | {"dispatcher", "numpy", "orjson"}
"""orjson only turns values into bytes, and is what digests and documents are made with."""


def imports_only_what_can_be_decided_with(path):
    return {name.partition(".")[0] for name in tree.imported(path)} <= ALLOWED


def is_a_rule(path):
    """Functions at the top of a module, none asynchronous, no object that changes, no clock."""
    nodes = list(ast.walk(tree.parsed(path)))
    functions = [node for node in tree.parsed(path).body if isinstance(node, ast.FunctionDef)]
    waits = any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in nodes)
    changes = any(isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) for node in nodes)
    pure = imports_only_what_can_be_decided_with(path) and "dispatcher.clock" not in tree.imported(path)
    return bool(functions) and pure and not waits and not changes


@pytest.mark.parametrize("rule", LISTED, ids=str)
def test_a_rule_imports_only_what_can_be_decided_with(rule):
    assert imports_only_what_can_be_decided_with(rule)


@pytest.mark.parametrize("rule", LISTED, ids=str)
def test_a_rule_takes_its_chance_as_an_argument(rule):
    used = {
        node.attr
        for node in ast.walk(tree.parsed(rule))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random"
    }

    assert used <= {"Random"}


def test_no_rule_is_left_out_of_the_list():
    rooms = [path for path in tree.python_files("dispatcher") if path.parts[1] in ROOMS_OF_RULES]

    assert [path for path in rooms if is_a_rule(path) and path not in LISTED] == []
