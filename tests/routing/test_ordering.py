"""The order of capabilities: the metric for the best by cosine, and a lexical share in units of a lead."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.routing import ordering
from dispatcher.routing.leave_one_out import leave_one_out
from dispatcher.routing.metric import IDENTITY
from dispatcher.routing.ordering import LexicalShares, fit_ordering, layout_of
from dispatcher.routing.prototype import unit
from tests.routing.test_metric import EAST, NORTH, UP, politely, prototype, registry

SHARES = LexicalShares(with_examples=0.2, without=0.5)
BACKGROUND = unit(np.array([[-1, -1, 0.2], [-1, 0.5, 0]], dtype=np.float32))
SHOP = registry(
    prototype("order", "a", **politely(EAST, 0.5)),
    prototype("order", "b", **politely(EAST + 0.2 * NORTH, 0.4)),
    prototype("polite", "c", thanks=EAST + 2 * UP, please=NORTH + 2 * UP),
    prototype("refund", "d", **politely(NORTH, 0.5)),
)


def fitted(shop=SHOP):
    return fit_ordering(shop, leave_one_out(shop), BACKGROUND, SHARES)


def turned(made, vector):
    return made.metric.turned(unit(vector)[None])[0]


def scores(made, vector, lexical=(0, 0, 0, 0)):
    cosines = (unit(vector) @ unit(SHOP.totals).T).astype(np.float32)
    layout = layout_of(SHOP.starts, len(SHOP.prototypes))
    shares = np.float32(made.worth) * np.array(lexical, dtype=np.float32)
    return made.scores(turned(made, vector), cosines, shares, layout)


def test_politeness_says_less_of_what_a_request_asks_for():
    polite = EAST + 0.9 * UP

    plain = scores(replace(fitted(), metric=IDENTITY), polite)
    order = scores(fitted(), polite)

    assert plain.argmax() == 1
    assert order[1] - order[0] < plain[1] - plain[0]


def test_a_capability_is_as_good_under_the_metric_as_its_best_agent_by_cosine_and_share():
    made = replace(fitted(), worth=0.1)
    lexical = (0, 0.2, 0.4, 0)

    found = scores(made, EAST + 0.5 * NORTH, lexical)

    fits = turned(made, EAST + 0.5 * NORTH) @ made.prototypes.T
    assert found == pytest.approx([fits[at] + 0.1 * lexical[at] for at in (1, 2, 3)], abs=1e-6)


def test_of_equal_agents_the_first_stands_for_its_capability():
    twice = registry(
        prototype("order", "a", **politely(EAST, 0.5)),
        prototype("order", "b", **politely(EAST, 0.5)),
        prototype("refund", "d", **politely(NORTH, 0.5)),
    )
    made = replace(fit_ordering(twice, leave_one_out(twice), BACKGROUND, SHARES), worth=0.1)
    layout = layout_of(twice.starts, 3)
    cosines = (EAST @ unit(twice.totals).T).astype(np.float32)

    with_share = made.scores(turned(made, EAST), cosines, np.array([0.1, 0.1, 0], dtype=np.float32), layout)
    without = made.scores(turned(made, EAST), cosines, np.zeros(3, dtype=np.float32), layout)

    assert with_share - without == pytest.approx([0.1, 0], abs=1e-6)


def test_without_a_metric_a_capability_has_its_best_agents_cosine_and_share():
    made = replace(fitted(), metric=IDENTITY, worth=0.1)

    found = scores(made, EAST, (0, 1, 0.5, 0))

    cosines = EAST @ unit(SHOP.totals).T
    assert found == pytest.approx(
        [max(cosines[0], cosines[1] + 0.1), cosines[2] + 0.05, cosines[3]], abs=1e-6
    )


def test_the_lexical_share_is_added_under_the_metric_too():
    without, with_share = (scores(replace(fitted(), worth=0.1), EAST, (0, 0, share, 0)) for share in (0, 1))

    assert with_share[1] - without[1] == pytest.approx(0.1, abs=1e-6)
    assert with_share[[0, 2]] == pytest.approx(without[[0, 2]])


def test_the_best_lexical_match_is_worth_most_and_others_in_proportion():
    made = replace(fitted(), worth=0.1)

    assert made.shares(np.array([0, 4, 2, 1], dtype=np.float32)) == pytest.approx([0, 0.1, 0.05, 0.025])
    assert not made.shares(np.zeros(4, dtype=np.float32)).any()


def test_those_beyond_the_shortlist_stay_behind_in_their_plain_order():
    many = registry(*(prototype(f"c{at:02}", "a", **politely(EAST + at * NORTH, 0.5)) for at in range(40)))
    made = fit_ordering(many, leave_one_out(many), BACKGROUND, SHARES)
    cosines = (NORTH @ unit(many.totals).T).astype(np.float32)

    layout = layout_of(many.starts, len(many.prototypes))
    found = made.scores(turned(made, NORTH), cosines, np.zeros(40, dtype=np.float32), layout)

    order = found.argsort()[::-1]
    assert found[order[ordering.SHORTLIST - 1]] > -1
    assert set(order[: ordering.SHORTLIST]) == set(cosines.argsort()[::-1][: ordering.SHORTLIST])
    assert list(order[ordering.SHORTLIST :]) == list(range(7, -1, -1))
    assert found[order[ordering.SHORTLIST]] < -2


def test_the_scale_is_the_lead_of_left_out_examples_and_shares_shrink_with_examples():
    assert fit_ordering(registry(), None, BACKGROUND, SHARES).worth == 0

    made = fitted()

    assert 0 < made.scale < 1
    assert made.worth == pytest.approx(0.2 * made.scale)
    assert SHARES.between(0) == 0.5
    assert SHARES.between(0.5) == pytest.approx(0.35)


def test_without_examples_the_scale_is_the_backgrounds_lead():
    made = fit_ordering(SHOP, None, BACKGROUND, SHARES)

    fits = made.metric.turned(BACKGROUND) @ made.prototypes.T
    best = np.stack([fits[:, :2].max(axis=1), fits[:, 2], fits[:, 3]], axis=1)
    assert made.scale == pytest.approx(float(np.median(best.max(axis=1) - best.mean(axis=1))), abs=1e-6)
    assert made.worth == pytest.approx(0.5 * made.scale)


def test_the_scale_does_not_depend_on_how_many_agents_a_capability_has():
    again = [prototype("refund", f"d{at}", **politely(NORTH, 0.5)) for at in range(20)]

    assert fitted(registry(*SHOP.prototypes, *again)).scale == pytest.approx(fitted().scale, abs=1e-5)


def test_of_many_examples_the_scale_takes_some_evenly():
    chosen = ordering._evenly(ordering.SCALE_ROWS + 500)

    assert len(chosen) == ordering.SCALE_ROWS
    assert (chosen[0], chosen[-1]) == (0, ordering.SCALE_ROWS + 499)
