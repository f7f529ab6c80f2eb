"""When the person is asked which of near capabilities is meant."""

import pytest

from dispatcher.identifiers import Capability
from dispatcher.records import replace
from dispatcher.routing.ambiguity import near_options
from dispatcher.routing.decision import Advice
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.rules import ClarifyRules

ORDER, PARCEL, REFUND, FAQ = map(Capability, ("order", "parcel", "refund", "faq"))


def _score(capability, score):
    return CapabilityScore(
        capability=capability, agent_cosines={}, cosine=score, similarity=score / 2, score=score
    )


RANKING = Ranking(
    text="where is it",
    capabilities=(_score(ORDER, 0.8), _score(PARCEL, 0.76), _score(REFUND, 0.72), _score(FAQ, 0.7)),
    scope_score=0.5,
    scope_floor=0.2,
    in_scope=True,
    encoder_id="encoder",
    registry_version=1,
    calibration="self",
    scale=0.5,
)


def near(margin=0.0, *, ranking=RANKING, hidden=(), twins=(), **own):
    rules = ClarifyRules(margin=margin, own={Capability(name): value for name, value in own.items()})
    found = near_options(ranking, rules, lambda one: one not in hidden, frozenset(twins))
    return [option.capability for option in found]


@pytest.mark.parametrize(
    ("margin", "found"),
    [(0.0, []), (0.07, []), (0.09, [ORDER, PARCEL]), (0.17, [ORDER, PARCEL, REFUND])],
)
def test_the_margin_is_in_units_of_the_scale(margin, found):
    assert near(margin) == found


def test_at_most_three_are_offered_with_their_similarities():
    options = near_options(RANKING, ClarifyRules(margin=1.0), lambda _: True, frozenset())

    assert options == ((ORDER, 0.4), (PARCEL, 0.38), (REFUND, 0.36))


def test_of_a_pair_the_larger_margin_holds():
    assert near(order=0.09) == [ORDER, PARCEL]
    assert near(refund=0.17) == [ORDER, REFUND]
    assert near(0.09, order=0.0) == [ORDER, PARCEL]
    assert near(0.09, order=0.0, parcel=0.0) == []


def test_what_is_out_of_scope_or_was_chosen_by_advice_is_not_asked_about():
    assert near(1.0, ranking=replace(RANKING, in_scope=False)) == []
    assert near(1.0, ranking=replace(RANKING, advice=(Advice.CHOICE.value,))) == []
    assert near(0.09, ranking=replace(RANKING, advice=(Advice.SPLIT.value,))) == [ORDER, PARCEL]


def test_only_what_may_be_offered_is_an_option():
    assert near(1.0, hidden=[ORDER]) == []
    assert near(1.0, hidden=[PARCEL, FAQ]) == [ORDER, REFUND]
    assert near(0.09, hidden=[PARCEL]) == []


@pytest.mark.parametrize("pair", [(ORDER, PARCEL), (PARCEL, ORDER)])
def test_twins_are_no_choice(pair):
    assert near(0.09, twins=[pair]) == []
    assert near(0.17, twins=[pair]) == [ORDER, REFUND]


def test_a_ranking_without_scale_asks_nothing():
    assert near(1.0, ranking=replace(RANKING, scale=0.0)) == []


@pytest.mark.parametrize(
    ("rules", "is_on"),
    [
        (ClarifyRules(), False),
        (ClarifyRules(own={ORDER: 0.0}), False),
        (ClarifyRules(margin=0.1), True),
        (ClarifyRules(own={ORDER: 0.1}), True),
    ],
)
def test_it_is_off_unless_some_margin_is_set(rules, is_on):
    assert rules.is_on is is_on
