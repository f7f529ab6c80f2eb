"""The success estimate and its window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.success import Outcomes, SuccessRules, SuccessWindow, add_outcome, decay, estimate

RULES = SuccessRules()
AGENT, QUERY = AgentId("order"), Capability("order.query")
amounts = st.floats(0, 1e6)
moments = st.floats(0, 1e6)
outcomes = st.builds(Outcomes, succeeded=amounts, failed=amounts, at=moments)


@given(known=outcomes, now=moments)
def test_an_estimate_is_a_probability(known, now):
    assert 0.0 <= estimate(known, now, RULES) <= 1.0


@given(known=outcomes, now=moments)
def test_a_success_raises_the_estimate_and_a_failure_lowers_it(known, now):
    def after(*, succeeded):
        new = add_outcome(known, succeeded=succeeded, now=now, half_life_s=RULES.half_life_s)
        return estimate(new, now, RULES)

    assert after(succeeded=False) <= estimate(known, now, RULES) <= after(succeeded=True)


@given(known=outcomes, first=moments, second=moments)
def test_decay_in_two_steps_is_decay_in_one(known, first, second):
    first, second = sorted((first + known.at, second + known.at))

    stepwise = decay(decay(known, first, 3600.0), second, 3600.0)
    at_once = decay(known, second, 3600.0)

    assert stepwise.at == at_once.at
    assert stepwise.succeeded == pytest.approx(at_once.succeeded, abs=1e-6)
    assert stepwise.failed == pytest.approx(at_once.failed, abs=1e-6)


def test_twenty_calls_weigh_as_much_as_the_prior():
    assert estimate(Outcomes(failed=20.0), 0.0, RULES) == pytest.approx(0.4)
    assert estimate(Outcomes(succeeded=20.0), 0.0, RULES) == pytest.approx(0.9)


def test_an_outcome_weighs_half_after_a_half_life():
    assert decay(Outcomes(succeeded=4.0, failed=2.0, at=0.0), 3600.0, 3600.0) == Outcomes(
        succeeded=2.0, failed=1.0, at=3600.0
    )


def test_a_long_silence_leads_back_to_the_prior():
    assert estimate(Outcomes(failed=1000.0), 30 * 3600.0, RULES) == pytest.approx(0.8, abs=1e-3)


def test_agents_and_capabilities_are_counted_apart():
    window = SuccessWindow(RULES)
    window.record(AGENT, QUERY, succeeded=False, now=0.0)

    assert window.estimate(AGENT, QUERY, 0.0) == pytest.approx(16 / 21)
    assert window.estimate(AGENT, Capability("order.cancel"), 0.0) == 0.8
    assert window.estimate(AgentId("faq"), QUERY, 0.0) == 0.8


def test_a_full_window_forgets_what_was_untouched_longest():
    window = SuccessWindow(SuccessRules(max_entries=2))
    for name in ("a", "b", "a", "c"):
        window.record(AgentId(name), QUERY, succeeded=False, now=0.0)

    assert len(window) == 2
    assert window.estimate(AgentId("b"), QUERY, 0.0) == 0.8
    assert window.estimate(AgentId("a"), QUERY, 0.0) == pytest.approx(16 / 22)


def test_a_removed_agent_leaves_nothing():
    window = SuccessWindow(RULES)
    window.record(AGENT, QUERY, succeeded=False, now=0.0)
    window.record(AgentId("faq"), QUERY, succeeded=False, now=0.0)

    window.forget(AGENT)

    assert len(window) == 1
