"""The composite stays in [0, 1] and never falls when a factor rises."""

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.registry.agent import AgentStatus, Liveness
from dispatcher.routing.decision import Weights
from dispatcher.routing.score import composite, headroom

_share = st.floats(0, 1)
_factors = st.tuples(_share, _share, _share)
_weights = _factors.filter(lambda shares: sum(shares) > 0.01).map(
    lambda shares: Weights(
        similarity=shares[0] / sum(shares), success=shares[1] / sum(shares), headroom=shares[2] / sum(shares)
    )
)


@given(_weights, _factors)
def test_it_lies_between_0_and_1_and_is_the_same_every_time(weights, factors):
    score = composite(weights, *factors)

    assert 0 <= score <= 1
    assert score == composite(weights, *factors)


@given(_weights, _factors, st.sampled_from([0, 1, 2]), _share)
def test_it_never_falls_when_a_factor_rises(weights, factors, which, other):
    low, high = sorted((factors[which], other))
    below, above = ((*factors[:which], value, *factors[which + 1 :]) for value in (low, high))

    assert composite(weights, *below) <= composite(weights, *above)


def test_the_default_weights_are_the_published_formula():
    assert composite(Weights(), 1, 0, 0) == 0.5
    assert composite(Weights(), 0, 1, 0) == 0.3
    assert composite(Weights(), 0, 0, 1) == 0.2


def test_rounding_does_not_lead_beyond_1():
    weights = Weights(similarity=0.33, success=0.56, headroom=0.11)

    assert 0.33 + 0.56 + 0.11 > 1
    assert composite(weights, 1, 1, 1) == 1
    assert composite(Weights(), -1e-17, 0, 0) == 0


@given(st.integers(0, 50), st.integers(0, 50))
def test_headroom_is_the_free_share(capacity, running):
    status = AgentStatus(liveness=Liveness.ALIVE, capacity=capacity, running=running, draining=False)

    free = headroom(status)

    assert 0 <= free <= 1
    assert (free == 0) == (running >= capacity)
