"""Pure rules are decided by their arguments alone, and are held to full branch coverage (`make test`)."""

import sys
from pathlib import Path

import pytest

from tests.architecture import tree

RULES = [Path(name) for name in tree.project()["tool"]["coverage"]["run"]["include"]]
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "contextvars",
        "http",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "queue",
        "random",
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


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_imports_only_what_can_be_decided_with(rule):
    tops = {name.partition(".")[0] for name in tree.imported(rule)}

    assert tops <= (sys.stdlib_module_names - IMPURE) | {"numpy", "dispatcher"}
