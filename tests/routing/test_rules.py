"""Settings that can't be used are refused when they are made."""

from dataclasses import replace
from typing import Any

import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.routing.decision import Weights
from dispatcher.routing.rules import RoutingRules


def test_the_defaults_are_the_published_ones():
    rules = RoutingRules()

    assert rules.weights == Weights(similarity=0.5, success=0.3, headroom=0.2)
    assert (rules.similarity_floor, rules.composite_floor, rules.lexical_share) == (0.35, 0.35, 0.2)
    assert (rules.margin, rules.saturation) == (0, 0.9)


@pytest.mark.parametrize(
    "weights",
    [Weights(similarity=0.5, success=0.3, headroom=0.3), Weights(similarity=1.2, success=-0.2, headroom=0)],
)
def test_weights_must_be_shares_of_one(weights):
    with pytest.raises(ConfigurationError, match="sum to 1"):
        RoutingRules(weights=weights)


@pytest.mark.parametrize(
    "name", ["margin", "similarity_floor", "composite_floor", "lexical_share", "saturation"]
)
@pytest.mark.parametrize("value", [-0.01, 1.01])
def test_shares_lie_between_0_and_1(name, value):
    with pytest.raises(ConfigurationError, match=name):
        replace(RoutingRules(), **{name: value})


@pytest.mark.parametrize("name", ["neighbours_kept", "group_kept", "search_limit", "retry_after_s"])
def test_counts_are_positive(name):
    changed: dict[str, Any] = {name: 0}

    with pytest.raises(ConfigurationError, match=name):
        replace(RoutingRules(), **changed)
