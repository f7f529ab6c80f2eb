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
from dispatcher.routing.ranking import Ranker, lexical_shares
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


def test_what_the_agents_of_a_capability_have_is_a_mapping_and_goes_into_the_record():
    ranking = _rank([0.25, 0.5, 0.1, 0.1])

    found = ranking.winner.agent_cosines
    assert (list(found), len(found), found["b"], found.get("z")) == (["a", "b"], 2, 0.5, None)
    assert repr(found) == "{'a': 0.25, 'b': 0.5}"
    assert read_ranking(ranking_document(ranking)) == ranking


def test_nothing_registered_ranks_nothing():
    ranker = Ranker([], Fitted(used=_calibration(), ordering=empty_ordering(2)), RoutingRules(), 4)
    empty = Table(cosines=np.zeros((1, 0), dtype=np.float32), lexical=np.zeros((1, 0), dtype=np.float32))

    (ranking,) = ranker.rank(["text"], VECTOR, empty, np.zeros(1, dtype=np.float32))

    assert ranking.winner is None
    assert not ranking.in_scope


def test_without_a_lexical_match_there_is_no_share():
    table = Table(
        cosines=np.array([[0.5, 0.4]], dtype=np.float32), lexical=np.zeros((1, 2), dtype=np.float32)
    )

    np.testing.assert_array_equal(lexical_shares(table), [[0, 0]])
