"""The first thing a stranger sees: no litter at the root, nothing that holds on one machine only."""

import re

from tests.architecture import tree

AT_THE_ROOT = frozenset(
    {
        ".ci",
        ".editorconfig",
        ".env.example",
        ".gitattributes",
        ".github",
        ".gitignore",
        ".pre-commit-config.yaml",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "MANIFEST.in",
        "Makefile",
        "README.md",
        "README.zh-CN.md",
        "SECURITY.md",
        "agents",
        "alembic.ini",
        "compose",
        "dispatcher",
        "docs",
        "migrations",
        "notebooks",
        "pyproject.toml",
        "requirements",
        "tests",
    }
)
MACHINE = re.compile(r"(?<![\w.])/(?:wor[k]|roo[t]|home/\w+|opt/wheel[s])/[\w.]")
REGISTRY = re.compile(r"https?://[\w.]*(?:pyp[i]|pythonhoste[d]|debia[n]|npmj[s]|pytorc[h])[\w.]*")
LARGEST = 1_000_000
"""Bytes of one file; data sets and models come from packages."""


def matching(pattern):
    """Where a pattern stands in any text file."""
    for path in tree.files():
        data = (tree.ROOT / path).read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode().splitlines(), start=1):
            if pattern.search(line):
                yield f"{path}:{number}"


def test_nothing_unexpected_lies_at_the_root():
    assert {path.parts[0] for path in tree.files()} <= AT_THE_ROOT


def test_no_file_names_a_path_of_one_machine():
    assert not list(matching(MACHINE))


def test_no_file_names_a_package_registry():
    assert not list(matching(REGISTRY))


def test_no_file_is_huge():
    assert not [path for path in tree.files() if (tree.ROOT / path).stat().st_size > LARGEST]
