"""`make demo`'s program: what a newcomer sees first."""

import json
import sys

import pytest

from agents.demo import SCENES
from agents.faq import agent as faq
from agents.logistics import agent as logistics
from agents.order import agent as order
from agents.promotion import agent as promotion
from tests.scenario.program import run


@pytest.fixture(scope="module")
def demo():
    return run(sys.executable, "-m", "agents.demo")


def test_it_ends_well_and_its_last_line_names_every_part(demo) -> None:
    last = json.loads(demo.stdout.splitlines()[-1])

    assert demo.returncode == 0, demo.stdout + demo.stderr
    outcomes = [
        (
            request["status"],
            [(part["capability"], part["agent_id"], part["status"]) for part in request["parts"]],
        )
        for request in last["requests"]
    ]
    assert outcomes == [
        (
            "completed",
            [("order.query", "order", "completed"), ("promotion.quote", "promotion", "completed")],
        ),
        (
            "completed",
            [("logistics.track", "logistics", "completed"), ("faq.answer", "faq", "completed")],
        ),
        ("fallback", [(None, None, "out_of_scope")]),
    ]


def test_the_trace_shows_every_stage(demo) -> None:
    for word in (
        "intents",
        "confidence",
        "decision on",
        "headroom",
        "chosen",
        "below_scope_floor",
        "deliveries",
    ):
        assert word in demo.stdout, word
    assert "2999" in demo.stdout


def test_nothing_is_printed_on_standard_error(demo) -> None:
    assert demo.stderr == ""


def test_the_demos_sentences_are_in_no_declaration() -> None:
    declared = json.dumps(
        [agent.declaration().to_json() for agent in (order, promotion, faq, logistics)], ensure_ascii=False
    ).lower()

    for scene in SCENES:
        for clause in scene.message.replace("？", "?").replace(",", "?").split("?"):
            words = clause.strip().removeprefix("另外").removeprefix("and ").lower()
            assert not words or words not in declared, words
