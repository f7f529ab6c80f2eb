"""Names say what a thing is, and limits are kept rather than silenced."""

import re

from tests.architecture import tree

DUMPING_GROUNDS = frozenset(
    {
        "base",
        "common",
        "core",
        "helper",
        "helpers",
        "manager",
        "managers",
        "misc",
        "shared",
        "types",
        "util",
        "utilities",
        "utils",
        "worker",
        "workers",
    }
)
VERSIONED = re.compile(r"_v\d+$")
SILENCED_LIMIT = re.compile(r"#\s*(?:noqa|ruff:\s*noqa)\b[^#]*\b(?:C901|PLR09\d+|PLR0904)\b")
PATCHING = re.compile(r"\b(?:unittest\.mock|monkeypatch\.setattr|mocker)\b")


def test_no_module_or_folder_is_a_dumping_ground():
    guilty = [path for path in tree.python_files() if DUMPING_GROUNDS & {*path.parent.parts, path.stem}]

    assert not guilty, "name it after what it holds"


def test_no_module_stands_beside_its_older_version():
    guilty = [path for path in tree.python_files(*tree.OURS) if VERSIONED.search(path.stem)]

    assert not guilty, "replace the old one in the same change"


def test_no_limit_is_silenced():
    guilty = [
        f"{path}:{number}"
        for path in tree.python_files()
        for number, line in enumerate(tree.lines(path), start=1)
        if SILENCED_LIMIT.search(line)
    ]

    assert not guilty, "make it smaller instead"


def test_no_test_patches_our_code():
    guilty = [
        f"{path}:{number}"
        for path in tree.python_files("tests")
        for number, line in enumerate(tree.lines(path), start=1)
        if path.name != "test_names.py" and PATCHING.search(line)
    ]

    assert not guilty, "pass a local adapter or a hand-written stub of one protocol"
