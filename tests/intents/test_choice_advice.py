"""Only an offered capability can be chosen, by whatever reply."""

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import Capability
from dispatcher.intents.choice_advice import Tie, choice_prompt, read_choices
from dispatcher.intents.language_model import Offer

TRACK, ORDER, QUOTE = (
    Offer(capability=Capability(name), description=f"does {name}")
    for name in ("parcel.track", "order.query", "promotion.quote")
)
TIES = [Tie(text="where is it", offers=(TRACK, ORDER)), Tie(text="cheaper?", offers=(QUOTE,))]


def test_each_text_gets_what_was_chosen_for_it_and_null_is_none():
    assert read_choices({"1": "order.query", "2": None}, TIES) == ("order.query", None)
    assert read_choices({"2": "promotion.quote", "1": "parcel.track"}, TIES) == (
        "parcel.track",
        "promotion.quote",
    )


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        "order.query",
        {},
        {"1": "order.query"},
        {"1": "order.query", "2": None, "3": None},
        {"0": "order.query", "1": None},
        {"1": "admin.delete", "2": None},
        {"1": "promotion.quote", "2": None},
        {"1": ["order.query"], "2": None},
        {"1": {"name": "order.query"}, "2": None},
        {"1": True, "2": None},
        {"1": "Order.Query", "2": None},
        {"1": "none", "2": None},
    ],
)
def test_a_reply_with_anything_wrong_is_refused_as_a_whole(said):
    with pytest.raises(UnavailableError, match=r"^the language model's reply "):
        read_choices(said, TIES)


def test_each_text_has_an_enumeration_of_its_own():
    prompt = choice_prompt("the message", TIES)

    assert prompt.data["message"] == "the message"
    assert prompt.data["texts"]["2"] == {
        "text": "cheaper?",
        "capabilities": [{"name": "promotion.quote", "description": "does promotion.quote"}],
    }
    assert {number: one["enum"] for number, one in prompt.schema["properties"].items()} == {
        "1": ["parcel.track", "order.query", None],
        "2": ["promotion.quote", None],
    }
    assert "cheaper" not in prompt.system
