"""What follows from a ranking and the declarations is made once, and made anew when they change."""

import numpy as np
import pytest

from dispatcher.identifiers import AgentId, Capability
from dispatcher.records import replace
from dispatcher.routing.curve import Curve
from dispatcher.routing.index import NOT_SEARCHED
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.shortlist import Shortlister, Wish
from dispatcher.routing.shortlists import Shortlists

CURVE = Curve(slope=10, intercept=-3)
TRACK, REFUND = Capability("track"), Capability("refund")


def _entry(name, score, **cosines):
    return CapabilityScore(
        capability=Capability(name),
        agent_cosines={AgentId(agent): cosine for agent, cosine in cosines.items()},
        cosine=max(cosines.values()),
        similarity=0.9,
        score=score,
    )


RANKING = Ranking(
    text="where is my parcel",
    capabilities=(_entry("track", 0.8, a=0.8, b=0.7), _entry("refund", 0.5, a=0.4, c=0.5)),
    scope_score=0.7,
    scope_floor=0.2,
    in_scope=True,
    encoder_id="encoder",
    registry_version=3,
    calibration="self",
    contrast=0.1,
    scale=0.5,
)
WISH = Wish(TRACK, 0.6, RANKING)


@pytest.fixture(autouse=True)
def registered(directory, an_agent, a_capability):
    track, refund = a_capability("track", "does track"), a_capability("refund", "does refund")
    directory.agents += [an_agent("a", track, refund), an_agent("b", track), an_agent("c", refund)]


@pytest.fixture
def shortlister(directory):
    return Shortlister(groups=directory.group, similarity=CURVE, rules=RoutingRules())


@pytest.fixture
def shortlists(shortlister):
    return Shortlists(shortlister)


def _lines(lines):
    return [(*line.key, line.cosine) for line in lines]


def test_the_group_and_the_nearest_others_are_listed(shortlister):
    made = shortlister.make(WISH)

    assert _lines(made.group) == [("track", "a", 0.8), ("track", "b", 0.7)]
    assert _lines(made.neighbours) == [("refund", "c", 0.5), ("refund", "a", 0.4)]
    assert (made.similarity, made.is_declared) == (0.9, True)


def test_similarity_is_that_of_each_agents_own_cosine(shortlister):
    made = shortlister.make(WISH)

    for line in (*made.group, *made.neighbours):
        assert line.similarity == pytest.approx(float(CURVE(np.array(line.cosine - 0.1))))


def test_without_a_ranking_all_have_the_wishs_similarity(shortlister):
    made = shortlister.make(Wish(REFUND, 0.6, None))

    assert [(line.key.agent_id, line.cosine, line.similarity) for line in made.group] == [
        ("a", 0.0, 0.6),
        ("c", 0.0, 0.6),
    ]
    assert (made.similarity, made.neighbours) == (0.6, ())


def test_a_capability_outside_the_ranking_has_all_ranked_ones_as_neighbours(shortlister):
    made = shortlister.make(Wish(Capability("rare"), 0.6, RANKING))

    assert not made.is_declared
    assert (made.similarity, len(made.group), len(made.neighbours)) == (0.6, 0, 4)


def test_where_everybody_has_left_nobody_is_listed(shortlister, directory):
    directory.agents.clear()

    made = shortlister.make(WISH)

    assert (made.is_declared, made.group, made.neighbours, made.similarity) == (False, (), (), 0.9)


def test_a_shortlist_is_remembered_whatever_the_agents_do(shortlists, directory):
    first = shortlists.find(WISH)
    directory.successes["a"] = 0.1

    assert shortlists.find(WISH) is first
    assert shortlists.find(Wish(TRACK, 0.6, replace(RANKING))) is first


@pytest.mark.parametrize(
    "other",
    [
        WISH._replace(capability=REFUND),
        WISH._replace(similarity=0.7),
        WISH._replace(ranking=replace(RANKING, contrast=0.2)),
    ],
)
def test_another_wish_has_its_own(shortlists, shortlister, other):
    first = shortlists.find(WISH)

    assert shortlists.find(other) == shortlister.make(other) != first


@pytest.mark.parametrize("name", ["track", "refund"])
def test_it_is_made_anew_when_an_agent_registers(shortlists, directory, an_agent, a_capability, name):
    first = shortlists.find(WISH)
    directory.agents.append(an_agent("z", a_capability(name, "does it")))

    again = shortlists.find(WISH)

    assert again is not first
    assert ("track", "z", 0.8) in _lines(again.group) or name == "refund"


def test_it_is_made_anew_when_an_agent_leaves(shortlists, directory):
    shortlists.find(WISH)
    del directory.agents[2]

    assert _lines(shortlists.find(WISH).neighbours) == [("refund", "a", 0.4)]


def test_without_a_ranking_nothing_is_remembered(shortlists):
    wish = WISH._replace(ranking=None)

    assert shortlists.find(wish) is not shortlists.find(wish)


def test_the_bound_counts_the_ranking_that_a_shortlist_keeps_alive(shortlister):
    made = 2 + 2 + 2
    """Group, neighbours, names of groups."""
    kept, dropped = (Shortlists(shortlister, limit=made + RANKING.size - less) for less in (0, 1))

    assert kept.find(WISH) is kept.find(WISH)
    assert dropped.find(WISH) is not dropped.find(WISH)


def test_the_agents_in_all_of_them_are_bounded(shortlister):
    shortlists = Shortlists(shortlister, limit=1)
    first = shortlists.find(WISH)

    assert shortlists.find(WISH) is not first


BESIDE = replace(
    RANKING,
    capabilities=(_entry("track", 0.8, a=0.44, b=0.3), _entry("refund", 0.75, a=0.56, c=0.1)),
    scope_score=0.46,
)
"""The winner is not the capability with the best cosine, by which the text is in scope."""


def _similarity(score):
    return pytest.approx(float(CURVE(np.array(score))))


def test_the_winners_agents_are_on_the_scale_by_which_the_text_was_accepted(shortlister):
    made = shortlister.make(WISH._replace(ranking=BESIDE))

    assert [line.similarity for line in made.group] == [_similarity(0.46), _similarity(0.32)]
    assert [line.cosine for line in made.group] == [0.44, 0.3]
    assert [line.similarity for line in made.neighbours] == [_similarity(0.46), _similarity(0.0)]


def test_a_near_capability_and_a_named_one_stay_on_their_own_scale(directory, shortlister):
    near = Shortlister(groups=directory.group, similarity=CURVE, rules=RoutingRules(margin=0.2))

    admitted = near.make(WISH._replace(ranking=BESIDE)).group
    named = shortlister.make(Wish(REFUND, 0.6, BESIDE)).group

    assert [line.similarity for line in admitted[2:]] == [_similarity(0.46), _similarity(0.0)]
    assert [line.similarity for line in named] == [_similarity(0.46), _similarity(0.0)]


def test_what_a_language_model_chose_instead_stays_on_its_own_scale(shortlister):
    chosen = replace(BESIDE, capabilities=BESIDE.capabilities[::-1], scope_score=0.5, advice=("choice",))

    made = shortlister.make(Wish(REFUND, 0.6, chosen))

    assert [line.similarity for line in made.group] == [_similarity(0.46), _similarity(0.0)]


def test_an_agent_that_was_not_searched_is_no_neighbour_and_has_the_lowest_that_was_found(shortlister):
    ranking = replace(
        RANKING,
        capabilities=(
            _entry("track", 0.8, a=0.8, b=NOT_SEARCHED),
            _entry("refund", 0.5, a=NOT_SEARCHED, c=0.5),
        ),
    )

    made = shortlister.make(WISH._replace(ranking=ranking))

    assert _lines(made.group) == [("track", "a", 0.8), ("track", "b", 0.5)]
    assert _lines(made.neighbours) == [("refund", "c", 0.5)]
