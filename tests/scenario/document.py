"""The code blocks of our documents that say how they are tested."""

import re

from tests.scenario.program import ROOT

BLOCK = re.compile(r"<!-- test: (?P<name>[^>]+?) -->\n```\w*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(document: str, name: str) -> list[str]:
    """The code of every block with that name; never empty."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = [match["code"] for match in BLOCK.finditer(text) if match["name"] == name]
    assert found, f"{document} has no block {name!r}"
    return found


def prepared(code: str, replacements: dict[str, str]) -> str:
    """The code with addresses of the test's own; each must occur."""
    for old, new in replacements.items():
        assert old in code, f"{old!r} is not in the block"
        code = code.replace(old, new)
    return code
