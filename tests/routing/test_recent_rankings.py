from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.recent_rankings import RecentRankings


def _ranking(text, agents):
    entry = CapabilityScore(
        capability=Capability("track"),
        agent_cosines={AgentId(str(number)): 0.5 for number in range(agents)},
        cosine=0.5,
        similarity=0.9,
    )
    return Ranking(
        text=text,
        capabilities=(entry,),
        scope_score=0.4,
        scope_floor=0.2,
        in_scope=True,
        encoder_id="encoder",
        registry_version=1,
        calibration="self",
    )


def test_a_kept_ranking_is_found_until_all_are_cleared():
    recent = RecentRankings()
    ranking = _ranking("a", 1)
    recent.keep([ranking, ranking])

    assert recent.find("a") is ranking
    recent.clear()
    assert recent.find("a") is None


def test_the_agents_of_all_rankings_together_are_bounded():
    recent = RecentRankings(limit=20)
    recent.keep([_ranking("a", 8), _ranking("b", 8)])
    recent.find("a")

    recent.keep([_ranking("c", 8)])

    assert [recent.find(text) is not None for text in "abc"] == [True, False, True]
