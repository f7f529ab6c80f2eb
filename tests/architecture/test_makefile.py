"""The Makefile is the front door: what it can do, it says."""

import re
import subprocess

from tests.architecture import tree

PROMISED = frozenset(["setup", "demo", "run", "test", "check", "lint", "types", "contracts", "bench", "docs"])


def targets():
    makefile = "\n".join(tree.lines(tree.ROOT / "Makefile"))
    return set(re.findall(r"^\.PHONY: (\w+)$", makefile, re.MULTILINE))


def test_every_promised_target_exists():
    assert targets() >= PROMISED


def test_help_lists_every_target():
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=tree.ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert {line.split()[1] for line in printed.splitlines()} == targets()
