"""A tie goes to what was chosen for it; the rules keep what they are sure of."""

from collections.abc import Sequence

import pytest

from dispatcher.dispatch.ties import Ties
from dispatcher.identifiers import Capability
from dispatcher.intents.choice_advice import Tie
from dispatcher.intents.doubt import DoubtRules
from dispatcher.intents.plan import Piece
from dispatcher.records import replace
from dispatcher.routing.ranking import Ranking
from tests.dispatch.test_standing import RANKING, score

A, B, C = map(Capability, "abc")
SURE = replace(RANKING, in_scope=True)
CLOSE = replace(SURE, capabilities=(score("a", 0.75), score("b", 0.73), score("c", 0.25)))
NEAR_FLOOR = replace(CLOSE, in_scope=False, scope_floor=0.52)
FAR = replace(RANKING, in_scope=False, scope_floor=0.75)


class Oracle:
    """A tie breaker that answers what it was told to, and notes what it was asked."""

    def __init__(self, *choices: Capability | None) -> None:
        self.choices = choices
        self.asked: list[tuple[str, Sequence[Tie]]] = []

    async def choose(self, message: str, ties: Sequence[Tie]) -> Sequence[Capability | None]:
        self.asked.append((message, ties))
        return self.choices


def piece(text: str = "where is my order", **fields) -> Piece:
    return Piece(text=text, start=0, end=len(text), **fields)


async def settle(
    oracle: Oracle,
    rankings: Sequence[Ranking],
    pieces: Sequence[Piece] | None = None,
    message: str = "message",
) -> Sequence[Ranking]:
    ties = Ties(breaker=oracle, describe=lambda name: f"does {name}", rules=DoubtRules(margin=0.1))
    return await ties.settle(message, pieces or [piece()] * len(rankings), rankings)


async def test_all_ties_of_a_message_are_asked_at_once_with_what_is_within_reach():
    oracle = Oracle(B, A)

    settled = await settle(oracle, [SURE, CLOSE, FAR, NEAR_FLOOR])

    assert [one.capabilities[0].capability for one in settled] == [A, B, A, A]
    assert [one.in_scope for one in settled] == [True, True, False, True]
    assert [one.advice for one in settled] == [(), ("choice",), (), ("choice",)]
    ((message, ties),) = oracle.asked
    assert message == "message"
    assert [[offer.capability for offer in tie.offers] for tie in ties] == [[A, B], [A, B]]
    assert ties[0].offers[0].description == "does a"


async def test_what_is_left_to_the_rules_stays_as_they_said():
    rankings = [CLOSE, NEAR_FLOOR]

    assert list(await settle(Oracle(None, None), rankings)) == rankings


async def test_without_a_tie_nothing_is_asked():
    oracle = Oracle()

    assert list(await settle(oracle, [SURE, FAR])) == [SURE, FAR]
    assert list(await settle(oracle, [CLOSE], message="x" * 2001)) == [CLOSE]
    assert oracle.asked == []


@pytest.mark.parametrize(
    ("ranking", "text", "winner", "advice"),
    [
        (CLOSE, "where is my order", B, ("choice",)),
        (NEAR_FLOOR, "where is my order", B, ("choice",)),
        (SURE, "exchange it", B, ("choice",)),
        (SURE, "where is my order", A, ()),
        (FAR, "where is my order", A, ()),
    ],
)
async def test_a_suggestion_counts_where_the_rules_are_unsure_of_the_piece(ranking, text, winner, advice):
    oracle = Oracle()

    (settled,) = await settle(oracle, [ranking], [piece(text, suggested=B)])

    assert (settled.capabilities[0].capability, settled.advice) == (winner, advice)
    assert oracle.asked == []


async def test_a_suggestion_that_is_not_near_counts_nowhere():
    oracle = Oracle(None)

    assert list(await settle(oracle, [CLOSE], [piece("exchange it", suggested=Capability("z"))])) == [CLOSE]
    assert len(oracle.asked) == 1


async def test_a_piece_with_advised_borders_says_so_whoever_chose_its_capability():
    settled = await settle(Oracle(B), [SURE, CLOSE], [piece(advised=True)] * 2)

    assert [one.advice for one in settled] == [("split",), ("split", "choice")]
