"""Documents do not go stale: their links lead somewhere, and the code they name exists."""

import importlib
import re
from pathlib import Path

import pytest

from tests.architecture import tree

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_NAME = re.compile(r"`(dispatcher(?:\.\w+)+)`")
CODE_PATH = re.compile(
    r"`((?:dispatcher|agents|migrations|tests|docs|compose|notebooks|requirements)/[\w./-]*)`"
)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
DECISION_PARTS = ("Context", "Options", "Decision", "Bad consequences", "What would reverse it")
DOCUMENTS = [path for path in tree.files() if path.suffix == ".md"]
DECISIONS = [path for path in DOCUMENTS if path.parts[:2] == ("docs", "decisions")]


def text(path):
    return (tree.ROOT / path).read_text(encoding="utf-8")


def anchors(path):
    """The fragments that headings of a document answer to."""
    titles = re.findall(r"^#+ +(.+)$", FENCE.sub("", text(path)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def leads_somewhere(document, link):
    target, _, fragment = link.partition("#")
    path = (tree.ROOT / document).parent / target if target else tree.ROOT / document
    return path.exists() and (not fragment or fragment in anchors(path))


def exists(name):
    """Whether a dotted name is a module of ours or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document):
    links = [link for link in LINK.findall(FENCE.sub("", text(document))) if "://" not in link]

    assert not [link for link in links if not leads_somewhere(document, link)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_named_code_exists(document):
    prose = FENCE.sub("", text(document))

    assert not [name for name in CODE_NAME.findall(prose) if not exists(name)]
    assert not [path for path in CODE_PATH.findall(prose) if not (tree.ROOT / path).exists()]


@pytest.mark.parametrize("decision", DECISIONS, ids=str)
def test_each_decision_says_what_it_costs_and_what_would_reverse_it(decision):
    titles = re.findall(r"^## (.+)$", text(decision), re.MULTILINE)

    assert tuple(titles) == DECISION_PARTS
    assert len(text(decision).splitlines()) <= 80, "one page"


def test_decisions_are_numbered_without_gaps():
    numbers = [int(path.name[:4]) for path in DECISIONS]

    assert numbers == list(range(1, len(numbers) + 1))


def test_the_change_log_has_a_section_for_what_is_not_released():
    assert "## Unreleased" in text(Path("CHANGELOG.md"))
