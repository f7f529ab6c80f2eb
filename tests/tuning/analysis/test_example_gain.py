"""Two runs side by side: what examples buy, and what they break."""

from dataclasses import replace

from dispatcher.identifiers import Capability
from dispatcher.tuning.analysis.example_gain import Gain, Learnt, extended, gains, learnt, limited, strangers
from dispatcher.tuning.basis.metrics import share
from dispatcher.tuning.basis.rows import AgentRow, RequestRow
from dispatcher.tuning.evaluation.routed import RoutedRow

A, B = Capability("a"), Capability("b")
AGENTS = {
    A: AgentRow(source_id="a", descriptions=("d",), examples=("one", "two")),
    B: AgentRow(source_id="b", descriptions=("d",), examples=("three",)),
}


def asked(text, won, *wanted, in_scope=True):
    row = RequestRow(text=text, language="en", wanted=frozenset(wanted))
    return RoutedRow(row=row, best=(won,), similarity=0.5, scope_score=0.5, in_scope=in_scope)


RIGHT, WRONG = asked("p", "a", "a"), asked("q", "b", "a")
REFUSED, STRANGER = asked("r", "b", "b", in_scope=False), asked("s", "b")
BEFORE = [RIGHT, WRONG, REFUSED, STRANGER]


def test_agents_get_fewer_or_more_examples():
    assert [row.examples for row in limited(AGENTS, 1).values()] == [("one",), ("three",)]
    assert [row.examples for row in extended(AGENTS, {B: ["four"]}).values()] == [
        ("one", "two"),
        ("three", "four"),
    ]


def test_a_run_is_right_or_refused_over_requests_inside():
    figures = learnt(3, BEFORE)

    assert figures == Learnt(examples=3, right=share(2, 3), lost=share(1, 3))
    assert learnt(0, [STRANGER]) == Learnt(examples=0, right=None, lost=None)


def test_what_only_one_run_answers_is_repaired_or_broken():
    after = [
        replace(RIGHT, best=("b",)),
        replace(WRONG, best=("a",)),
        replace(REFUSED, in_scope=True),
        STRANGER,
    ]

    assert gains(BEFORE, after) == [
        Gain(capability=A, of=2, before=1, after=1, repaired=("q",), broken=("p",)),
        Gain(capability=B, of=1, before=0, after=1, repaired=("r",), broken=()),
    ]


def test_strangers_that_are_accepted_are_counted():
    assert strangers(BEFORE) == 1
    assert strangers([replace(STRANGER, in_scope=False)]) == 0
