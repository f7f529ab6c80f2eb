"""Which option of a question a message chooses."""

import pytest

from dispatcher.dispatch.lifecycle.session import Question
from dispatcher.dispatch.option_choice import chosen_option
from dispatcher.identifiers import Capability
from dispatcher.records import replace
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.rules import ClarifyRules

ORDER, PARCEL, JOKE = map(Capability, ("order.query", "parcel.track", "joke.tell"))
QUESTION = Question(
    capability=ORDER, text="where is it", similarity=0.9, options=((ORDER, 0.9), (PARCEL, 0.8))
)
RULES = ClarifyRules(margin=0.1)


def ranking(*scores: tuple[Capability, float]) -> Ranking:
    return Ranking(
        text="a message",
        capabilities=tuple(
            CapabilityScore(capability=name, agent_cosines={}, cosine=score, similarity=score, score=score)
            for name, score in scores
        ),
        scope_score=0.5,
        scope_floor=0.2,
        in_scope=True,
        encoder_id="test",
        registry_version=1,
        calibration="self",
        scale=0.5,
    )


CLEAR = ranking((PARCEL, 0.8), (ORDER, 0.6))


@pytest.mark.parametrize("message", ["2", "parcel.track", "the parcel"])
def test_a_number_a_name_or_a_clear_text_chooses(message: str) -> None:
    assert chosen_option(QUESTION, message, CLEAR, RULES, has_entities=False) == (PARCEL, 0.8)


@pytest.mark.parametrize(
    "unclear",
    [
        ranking((PARCEL, 0.8), (ORDER, 0.78)),
        ranking((JOKE, 0.8), (PARCEL, 0.6)),
        replace(CLEAR, in_scope=False),
    ],
)
def test_a_text_that_is_near_to_two_or_to_none_of_them_chooses_nothing(unclear: Ranking) -> None:
    assert chosen_option(QUESTION, "hm", unclear, RULES, has_entities=False) is None


def test_a_text_with_an_entity_is_a_wish_of_its_own_but_a_number_is_not() -> None:
    assert chosen_option(QUESTION, "parcel 4711", CLEAR, RULES, has_entities=True) is None
    assert chosen_option(QUESTION, "1", CLEAR, RULES, has_entities=True) == (ORDER, 0.9)
