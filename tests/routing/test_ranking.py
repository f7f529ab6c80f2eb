"""Tables of scores become rankings: order, scope and what is kept."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.curve import Curve
from dispatcher.routing.fitting import Fitted
from dispatcher.routing.index import NOT_SEARCHED
from dispatcher.routing.ordering import empty_ordering
from dispatcher.routing.prototype_store import Table
from dispatcher.routing.ranking import CapabilityScore, Ranked, Ranker, best_first
from dispatcher.routing.record import ranking_document, read_ranking
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.slots import Key

KEYS = [
    Key(Capability(c), AgentId(a)) for c, a in (("bill", "a"), ("bill", "b"), ("mail", "a"), ("post", "c"))
]


VECTOR = np.array([[1, 0]], dtype=np.float32)
PLAIN = replace(empty_ordering(2), scale=0.5, worth=0.1)
"""Without a metric, the best lexical match is worth 0.1."""


def _calibration(**changed):
    known: dict[str, Any] = {
        "encoder_id": "encoder",
        "registry_version": 3,
        "kind": "self",
        "floor": 0.2,
        "curve": Curve(slope=10, intercept=-3),
    }
    return Calibration(**(known | changed))


def _rank(cosines, lexical=(0, 0, 0, 0), *, contrast=0.1, rules=None, **changed):
    fitted = Fitted(used=_calibration(**changed), ordering=PLAIN)
    ranker = Ranker(KEYS, fitted, rules or RoutingRules(), 4)
    table = Table(
        cosines=np.array([cosines], dtype=np.float32), lexical=np.array([lexical], dtype=np.float32)
    )
    (ranking,) = ranker.rank(["text"], VECTOR, table, np.array([contrast], dtype=np.float32))
    return ranking


def test_a_capability_is_as_good_as_its_best_agent():
    ranking = _rank([0.3, 0.6, 0.5, 0.1])

    assert [one.capability for one in ranking.capabilities] == ["bill", "mail", "post"]
    assert ranking.winner.cosine == pytest.approx(0.6)
    assert ranking.winner.agent_cosines == pytest.approx({"a": 0.3, "b": 0.6})


def test_the_lexical_share_decides_between_near_capabilities_and_is_no_cosine():
    ranking = _rank([0.5, 0.2, 0.55, 0.1], [4, 0, 2, 0])

    assert ranking.winner.capability == "bill"
    assert ranking.winner.score == pytest.approx(0.5 + 0.2 * 0.5)
    assert ranking.winner.cosine == pytest.approx(0.5)
    assert ranking.scope_score == pytest.approx(0.55 - 0.1)


def test_ties_go_by_name():
    assert _rank([0.5, 0.1, 0.5, 0.5]).winner.capability == "bill"
    assert _rank([0.1, 0.1, 0.5000001, 0.5]).winner.capability == "mail"


def test_similarity_is_the_calibrated_contrastive_score():
    ranking = _rank([0.6, 0.1, 0.4, 0.1])

    similarities = [one.similarity for one in ranking.capabilities]
    assert similarities == pytest.approx([1 / (1 + np.exp(-(10 * x - 3))) for x in (0.5, 0.3, 0.0)], rel=1e-5)


def test_the_scope_floor_and_the_published_floor_are_both_needed():
    assert _rank([0.6, 0, 0, 0]).in_scope
    assert not _rank([0.29, 0, 0, 0], curve=Curve(slope=0, intercept=9)).in_scope
    assert not _rank([0.6, 0, 0, 0], curve=Curve(slope=0, intercept=-9)).in_scope


def test_it_says_what_it_was_made_with():
    ranking = _rank([0.6, 0, 0, 0])

    assert (ranking.encoder_id, ranking.registry_version, ranking.calibration) == ("encoder", 4, "self")
    assert (ranking.scope_floor, ranking.contrast, ranking.scale) == pytest.approx((0.2, 0.1, 0.5))


def test_only_the_best_are_kept():
    assert len(_rank([0.6, 0, 0.1, 0.2], rules=RoutingRules(neighbours_kept=1)).capabilities) == 2


def test_an_agent_beyond_the_search_limit_has_the_lowest_cosine_and_is_known_to_be_there():
    ranking = _rank([0.3, NOT_SEARCHED, 0.1, NOT_SEARCHED])

    assert ranking.winner.agent_cosines == pytest.approx({"a": 0.3, "b": NOT_SEARCHED})
    assert ranking.capabilities[-1].agent_cosines == {"c": NOT_SEARCHED}


def test_it_comes_back_from_its_record():
    ranking = _rank([0.25, 0.5, 0.1, 0.1])

    assert read_ranking(ranking_document(ranking)) == ranking


def test_those_behind_the_best_are_made_when_somebody_looks_and_once():
    made = []

    def others():
        made.append("others")
        return [two]

    one, two = (CapabilityScore(Capability(name), {}, 0.5, 0.5) for name in ("one", "two"))
    ranked = Ranked(one, 3, others)

    assert (ranked[0], bool(ranked), ranked.size, made) == (one, True, 3, [])
    assert (list(ranked), len(ranked), ranked[1], ranked[:1]) == ([one, two], 2, two, (one,))
    assert repr(ranked) == repr((one, two))
    assert ranked == (one, two) == ranked != [one, two]
    assert made == ["others"]


def test_what_it_costs_to_remember_it_counts_its_own_agents_however_many_there_are():
    assert _rank([0.25, 0.5, 0.1, 0.1]).size == 5
    assert _rank([0.25, 0.5, 0.1, 0.1], rules=RoutingRules(neighbours_kept=1)).size == 4
    assert read_ranking(ranking_document(_rank([0.25, 0.5, 0.1, 0.1]))).size == 5
    assert _many(64).size == _many(32).size == 1 + 21


def test_the_best_of_many_come_first_and_ties_go_by_name():
    names = [one.capability for one in _many(64).capabilities]

    assert names == [f"c{at:02}" for at in (*range(0, 64, 4), *range(1, 21, 4))]
    assert best_first(np.array([0.1, 0.5, 0.4, 0.5000001], dtype=np.float32), 2).tolist() == [1, 3]


def _many(count):
    """Every fourth capability is the best, the one after it the next best, and so on."""
    keys = [Key(Capability(f"c{at:02}"), AgentId("a")) for at in range(count)]
    ranker = Ranker(keys, Fitted(used=_calibration(), ordering=PLAIN), RoutingRules(), 4)
    cosines = np.array([[0.5 - at % 4 / 10 for at in range(count)]], dtype=np.float32)
    table = Table(cosines=cosines, lexical=np.zeros((1, count), dtype=np.float32))
    (ranking,) = ranker.rank(["text"], VECTOR, table, np.array([0.1], dtype=np.float32))
    return ranking


def test_nothing_registered_ranks_nothing():
    ranker = Ranker([], Fitted(used=_calibration(), ordering=empty_ordering(2)), RoutingRules(), 4)
    empty = Table(cosines=np.zeros((1, 0), dtype=np.float32), lexical=np.zeros((1, 0), dtype=np.float32))

    (ranking,) = ranker.rank(["text"], VECTOR, empty, np.zeros(1, dtype=np.float32))

    assert ranking.winner is None
    assert not ranking.in_scope
