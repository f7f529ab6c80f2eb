"""How a simulated week's agents, tasks and people are."""

import random
from statistics import fmean

from dispatcher.dispatch.lifecycle.judgement import Verdict
from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.decision import Outcome
from dispatcher.tuning.analysis.simulated import BAD_RATE, HOUR_MS, Said, condition, said, status_of
from tests.tuning.records import candidate, decision

REFUND, ORDER, STOCK = Capability("refund"), Capability("order"), Capability("stock")
AGENTS = {AgentId(f"agent-{number}"): REFUND for number in range(60)}
CHOSEN = decision(candidate("good", success=1.0))
REFUSED = decision(outcome=Outcome.OUT_OF_SCOPE)


class Always(random.Random):
    """Draws one number for ever."""

    def __init__(self, number):
        super().__init__(0)
        self.number = number

    def random(self):
        return self.number


def at(hour, seed=1):
    return condition(AGENTS, hour * HOUR_MS, seed)


def test_the_same_hour_is_the_same_and_another_seed_is_not():
    assert at(5) == at(5)
    assert at(5) != at(5, seed=2)


def test_agents_are_busier_in_the_afternoon():
    night, day = (fmean(one.load for one in at(hour).values()) for hour in (4, 16))

    assert night < 0.35
    assert day > 0.55
    assert all(0 <= one.load <= 1 for one in at(16).values())


def test_an_agents_success_is_its_own_but_for_bad_days():
    days = [at(24 * day) for day in range(7)]
    rates = [{day[key].success for day in days} for key in days[0]]

    assert all(len(own - {BAD_RATE}) <= 1 for own in rates)
    assert any(BAD_RATE in own for own in rates)


def test_a_task_ends_as_its_agents_success_says():
    assert status_of(CHOSEN, Always(0.99)) == "completed"
    assert status_of(decision(candidate(success=0.5)), Always(0.6)) == "failed"
    assert status_of(REFUSED, Always(0.0)) == "out_of_scope"


def test_somebody_says_whether_it_was_right():
    talks, silent = Always(0.0), Always(0.9)

    assert said(CHOSEN, {REFUND}, talks) == Said(Verdict.RIGHT, None)
    assert said(REFUSED, set(), talks) == Said(Verdict.RIGHT, None)
    assert said(CHOSEN, set(), talks) == Said(Verdict.OUT_OF_SCOPE, None)
    assert said(CHOSEN, {ORDER, STOCK}, talks) == Said(Verdict.WRONG_CAPABILITY, ORDER)
    assert said(REFUSED, {ORDER}, talks) == Said(Verdict.WRONG_CAPABILITY, ORDER)
    assert said(CHOSEN, set(), silent) == Said(None, None)


def test_what_was_wrong_is_said_more_often_than_what_was_right():
    sometimes = Always(0.3)

    assert said(CHOSEN, {REFUND}, sometimes).verdict is None
    assert said(CHOSEN, {ORDER}, sometimes).verdict is Verdict.WRONG_CAPABILITY
