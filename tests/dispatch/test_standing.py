"""What advice does to a ranking, and that it does nothing else."""

from dispatcher.dispatch.standing import of_piece, standing_of, with_choice
from dispatcher.identifiers import AgentId, Capability
from dispatcher.intents.doubt import Near, Standing
from dispatcher.intents.plan import Piece
from dispatcher.records import replace
from dispatcher.routing.ranking import CapabilityScore, Ranking


def score(name: str, value: float) -> CapabilityScore:
    return CapabilityScore(
        capability=Capability(name),
        agent_cosines={AgentId(name): value},
        cosine=value,
        similarity=value,
        score=value,
    )


RANKING = Ranking(
    text="where is it",
    capabilities=(score("a", 0.75), score("b", 0.5), score("c", 0.25)),
    scope_score=0.5,
    scope_floor=0.75,
    in_scope=False,
    encoder_id="encoder",
    registry_version=1,
    calibration="self",
    scale=0.5,
)


def test_a_standing_has_the_nearest_capabilities_and_the_distances():
    assert standing_of(RANKING, 2) == Standing(
        near=(Near(Capability("a"), 0.75, 0.0), Near(Capability("b"), 0.5, 0.25)),
        in_scope=False,
        below=0.25,
        unit=0.5,
    )


def test_where_nothing_is_registered_nothing_is_near():
    assert standing_of(replace(RANKING, capabilities=()), 5).near == ()


def test_what_is_chosen_comes_first_and_is_in_scope_and_the_scores_stay():
    chosen = with_choice(RANKING, Capability("b"))

    assert [one.capability for one in chosen.capabilities] == ["b", "a", "c"]
    assert (chosen.in_scope, chosen.advice) == (True, ("choice",))
    back = replace(chosen, capabilities=RANKING.capabilities, in_scope=False, advice=())
    assert back == RANKING


def test_a_ranking_says_who_drew_the_borders_of_its_text():
    piece = Piece(text="where is it", start=0, end=11)
    advised = of_piece(RANKING, replace(piece, advised=True))

    assert of_piece(RANKING, piece) is RANKING
    assert advised.advice == ("split",)
    assert with_choice(advised, Capability("a")).advice == ("split", "choice")
