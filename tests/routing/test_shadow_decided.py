"""A calibration in shadow: its verdict goes with the ranking into the decision, and is stored with it."""

from dataclasses import replace
from typing import Any

import pytest

from dispatcher import records
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.curve import Curve
from dispatcher.routing.decision import Outcome
from dispatcher.routing.fitting import Given
from dispatcher.routing.record import decision_document, ranking_document, read_decision, read_ranking
from dispatcher.routing.shadow import Shadow

PARCEL = (
    "parcel.track",
    "I track the parcel",
    "where is the parcel",
    "is the parcel late",
    "track my parcel",
)
REFUND = ("refund.pay", "I pay the refund", "when comes the refund", "I want a refund", "refund my payment")
LENIENT = Calibration(
    encoder_id="hashing-ngram-1",
    registry_version=1,
    kind="labelled 4",
    floor=-1.0,
    curve=Curve(slope=1.0, intercept=9.0),
)
STRICT = replace(LENIENT, floor=1.0)
INSIDE, OUTSIDE = "where is my parcel", "zebras eat quarks"


@pytest.fixture
async def router(router_of, directory, an_agent, a_capability):
    directory.agents = [an_agent("p", a_capability(*PARCEL)), an_agent("r", a_capability(*REFUND))]
    router = router_of()
    await router.sync(directory.agents, 1)
    return router


def _shadow(router, calibration):
    router.follow(Given(base=None, shadow=Shadow(number=4, calibration=calibration)))


async def _decide(router, query):
    (ranking,) = await router.rank([query.text])
    return router.decide(query, ranking), ranking


@pytest.mark.parametrize(
    ("calibration", "text", "outcome", "in_shadow"),
    [
        (LENIENT, INSIDE, Outcome.SELECTED, Outcome.SELECTED),
        (STRICT, INSIDE, Outcome.SELECTED, Outcome.OUT_OF_SCOPE),
        (LENIENT, OUTSIDE, Outcome.OUT_OF_SCOPE, Outcome.SELECTED),
        (STRICT, OUTSIDE, Outcome.OUT_OF_SCOPE, Outcome.OUT_OF_SCOPE),
    ],
)
async def test_a_decision_carries_what_the_other_would_have_been(
    router, a_query, calibration, text, outcome, in_shadow
):
    before, _ = await _decide(router, a_query(text=text))
    _shadow(router, calibration)

    made, ranking = await _decide(router, a_query(text=text))

    assert made.outcome is outcome
    assert made.shadow is not None
    assert (made.shadow.number, made.shadow.outcome) == (4, in_shadow)
    assert made.shadow.scope_floor == calibration.floor
    assert made.shadow.similarity == pytest.approx(calibration.similarity_of(made.scope_score))
    assert records.replace(made, shadow=None, elapsed_ms=0) == records.replace(before, elapsed_ms=0)
    assert read_decision(decision_document(made)) == made
    assert read_ranking(ranking_document(ranking)) == ranking


async def test_what_was_accepted_when_it_was_read_is_told_as_well(router, a_query):
    _shadow(router, STRICT)
    (ranking,) = await router.rank([INSIDE])

    made = router.decide(a_query(text=INSIDE, capability=ranking.winner.capability), ranking)

    assert made.shadow is not None
    assert made.shadow.outcome is Outcome.OUT_OF_SCOPE


@pytest.mark.parametrize("text", [INSIDE, OUTSIDE])
async def test_a_named_capability_is_nobodys_to_refuse(router, a_query, text):
    _shadow(router, STRICT)
    (ranking,) = await router.rank([text])
    named = a_query(text=text, capability="refund.pay")

    assert ranking.shadow is not None
    assert router.decide(named, ranking).shadow is None
    assert router.decide(named).shadow is None


async def test_what_a_language_model_accepted_is_not_compared(router, a_query):
    _shadow(router, STRICT)
    (ranking,) = await router.rank([INSIDE])

    assert router.decide(a_query(text=INSIDE), records.replace(ranking, advice=("choice",))).shadow is None


async def test_decisions_stored_before_there_were_shadows_are_read(router, a_query):
    made, ranking = await _decide(router, a_query(text=INSIDE))
    shadowless = '"shadow":null'

    assert made.shadow is None
    assert shadowless in decision_document(made)
    older: dict[str, Any] = {"decision": decision_document(made), "ranking": ranking_document(ranking)}
    older = {name: text.replace("," + shadowless, "") for name, text in older.items()}
    assert read_decision(older["decision"]) == made
    assert read_ranking(older["ranking"]) == ranking


async def test_of_an_empty_registry_nothing_is_said(router, a_query):
    _shadow(router, STRICT)
    await router.sync([], 2)

    made, ranking = await _decide(router, a_query(text=INSIDE))

    assert (ranking.shadow, made.shadow) == (None, None)


async def test_what_a_bar_above_the_floors_overruled_is_not_compared(router, a_query):
    _shadow(router, LENIENT)
    (inside,), (outside,) = await router.rank([INSIDE]), await router.rank([OUTSIDE])

    overruled = router.decide(a_query(text=INSIDE), records.replace(inside, in_scope=False))
    below = router.decide(a_query(text=OUTSIDE), records.replace(outside, in_scope=False))

    assert inside.in_scope
    assert (overruled.outcome, overruled.shadow) == (Outcome.OUT_OF_SCOPE, None)
    assert below.shadow is not None
