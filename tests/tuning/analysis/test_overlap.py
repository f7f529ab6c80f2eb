"""Which capabilities are taken for one another."""

import numpy as np
import pytest

from dispatcher.identifiers import Capability
from dispatcher.tuning.analysis.overlap import confused, nearest_pairs, overlap, rounds
from dispatcher.tuning.basis.rows import AgentRow, RequestRow
from dispatcher.tuning.evaluation.routed import RoutedRow

A, B, C = Capability("a"), Capability("b"), Capability("c")


def row(*examples):
    return AgentRow(source_id="x", descriptions=("d",), examples=examples)


def won(wanted, *best):
    request = RequestRow(text="t", language="und", wanted=frozenset({wanted}))
    return RoutedRow(row=request, best=best, similarity=0.5, scope_score=0.5, in_scope=True)


VERDICTS = [won("a", "a"), won("a", "b"), won("b", "b"), won("c", "c"), won("c")]


def test_each_round_leaves_out_one_example_of_each_capability_and_asks_it():
    first, second = rounds({A: row("one", "two"), B: row("three"), C: row()})

    assert {name: one.examples for name, one in first.agents.items()} == {"a": ("two",), "b": (), "c": ()}
    assert [(one.text, set(one.wanted)) for one in first.requests] == [("one", {"a"}), ("three", {"b"})]
    assert [one.text for one in second.requests] == ["two"]
    assert second.agents[B].examples == ("three",)
    assert not list(rounds({}))


def test_an_example_that_is_asked_is_registered_nowhere_and_nothing_is_asked_twice():
    agents = {A: row("one", "ONE ", "two"), B: row("x", "One", "d"), C: row("D", "three")}

    first, second = rounds(agents)

    assert [one.text for one in first.requests] == ["one", "x", "three"], "'D' is a description"
    assert {name: one.examples for name, one in first.agents.items()} == {
        "a": ("two",),
        "b": ("d",),
        "c": ("D",),
    }
    assert [one.text for one in second.requests] == ["two", "One"]
    assert second.agents[A].examples == ()


def test_the_table_has_the_share_that_each_capability_wins():
    found = overlap([C, A, B], VERDICTS)

    assert found.names == ("a", "b", "c")
    assert found.shares.tolist() == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]]


def test_only_who_is_confused_is_kept():
    found = confused(overlap([A, B, C], VERDICTS), 0.5)

    assert found.names == ("a", "b")
    assert found.shares.tolist() == [[0.5, 0.5], [0, 1]]
    assert confused(found, 0.6).names == ()


def test_pairs_that_win_each_others_texts_come_first_then_the_nearest():
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)

    pairs = nearest_pairs([A, B, C], vectors, VERDICTS)

    assert [(pair.one, pair.other, pair.taken) for pair in pairs] == [
        ("a", "b", 1),
        ("b", "c", 0),
        ("a", "c", 0),
    ]
    assert pairs[1].cosine == pytest.approx(0.8)
