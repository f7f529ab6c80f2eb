"""The code blocks of our documents that say how they are tested."""

import re

from tests.scenario.program import ROOT

BLOCK = re.compile(r"<!-- test: (?P<name>[^>]+?) -->\n```\w*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def named_blocks(document: str) -> list[tuple[str, str]]:
    """Name and code of every block, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [(match["name"], match["code"]) for match in BLOCK.finditer(text)]


def blocks(document: str, name: str) -> list[str]:
    """The code of every block with that name; never empty."""
    found = [code for found_name, code in named_blocks(document) if found_name == name]
    assert found, f"{document} has no block {name!r}"
    return found


def prepared(code: str, replacements: dict[str, str]) -> str:
    """The code with addresses of the test's own; each must occur."""
    for old, new in replacements.items():
        assert old in code, f"{old!r} is not in the block"
        code = code.replace(old, new)
    return code
