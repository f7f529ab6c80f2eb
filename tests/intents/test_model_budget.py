"""A language model is asked so much and no more, and nobody waits for its budget."""

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.intents.model_budget import BudgetRules, ModelBudget
from tests.intents.held_clock import HeldClock

CLOCK_RULES = BudgetRules(calls=2, tokens_per_minute=600, failures=3, rest_s=30.0)


def fail(budget: ModelBudget) -> None:
    with pytest.raises(UnavailableError, match="broke"), budget.spending(1):
        raise UnavailableError("broke")


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def budget(clock) -> ModelBudget:
    return ModelBudget(CLOCK_RULES, clock)


def test_tokens_come_back_at_their_rate_and_not_beyond_a_minutes(budget, clock):
    with budget.spending(600):
        pass
    with pytest.raises(UnavailableError, match="used up"), budget.spending(100):
        pass
    clock.now += 10
    with budget.spending(100):
        pass
    with pytest.raises(UnavailableError, match="used up"), budget.spending(1):
        pass
    clock.now += 3600
    with budget.spending(600):
        pass
    with pytest.raises(UnavailableError, match="used up"), budget.spending(1):
        pass


@pytest.mark.parametrize(("cost", "left"), [(200, 400), (0, 600), (-50, 600), (600, 0)])
def test_what_was_estimated_too_high_is_given_back(budget, cost, left):
    with budget.spending(600) as spent:
        spent.tokens = cost

    with pytest.raises(UnavailableError, match="used up"), budget.spending(left + 1):
        pass
    with budget.spending(left):
        pass


def test_a_cost_that_was_estimated_too_low_is_paid_for_later_but_never_for_more_than_a_minute(budget, clock):
    with budget.spending(100) as spent:
        spent.tokens = 10**18
    clock.now += 30
    with budget.spending(300):
        pass


def test_more_calls_than_allowed_are_refused_until_one_ends(budget):
    with budget.spending(1):
        with budget.spending(1), pytest.raises(UnavailableError, match="run already"), budget.spending(1):
            pass
        with budget.spending(1):
            pass


def test_a_call_that_was_broken_off_has_ended(budget):
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), budget.spending(1):
            raise ZeroDivisionError

    with budget.spending(1), budget.spending(1):
        pass


def test_after_some_failures_in_a_row_it_rests(budget, clock):
    for _ in range(3):
        fail(budget)
    with pytest.raises(UnavailableError, match="left alone"), budget.spending(1):
        pass
    clock.now += 29.9
    with pytest.raises(UnavailableError, match="left alone"), budget.spending(1):
        pass
    clock.now += 0.2
    with budget.spending(1):
        pass


def test_a_success_in_between_starts_the_count_anew(budget):
    for _ in range(3):
        fail(budget)
        fail(budget)
        with budget.spending(1):
            pass


def test_what_the_budget_itself_refuses_is_no_failure_of_the_model(budget):
    with budget.spending(600) as spent:
        for _ in range(5):
            with pytest.raises(UnavailableError, match="used up"), budget.spending(1):
                pass
        spent.tokens = 0

    with budget.spending(600):
        pass
