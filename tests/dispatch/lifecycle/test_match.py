"""From what a caller calls a capability to its name."""

import pytest

from dispatcher.dispatch.lifecycle.match import MatchRules, matched, plain
from dispatcher.dispatch.lifecycle.request import ChatMessage, Match
from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from tests.dispatch.builders import ORDER, QUOTE

RULES = MatchRules(synonyms={plain("Track Order"): ORDER, plain("查订单"): ORDER, plain(QUOTE): ORDER})


def message(match: Match, wanted: str | None, environment: str = "production") -> ChatMessage:
    return ChatMessage(message="a message", environment=environment, match=match, wanted=wanted)


def loose(wanted: str) -> ChatMessage:
    return matched(message(Match.LOOSE, wanted), RULES, {ORDER, QUOTE})


@pytest.mark.parametrize("wanted", ["order.query", "track order", "ＴＲＡＣＫ   order", " 查订单 "])
def test_a_name_or_an_alias_is_found_loosely(wanted: str) -> None:
    assert (loose(wanted).capability, loose(wanted).wanted) == (ORDER, None)


def test_a_name_goes_before_an_alias() -> None:
    assert loose(QUOTE).capability == QUOTE


def test_what_is_neither_is_unknown() -> None:
    with pytest.raises(RequestError) as refused:
        loose("sing a song")

    assert refused.value.error_code == "unknown_capability"


def test_a_message_that_says_nothing_or_describes_stays_as_it_is() -> None:
    named = ChatMessage(message="a message", environment="production", capability=Capability("x"))
    described = message(Match.SEMANTIC, "who sings")

    assert matched(named, RULES, ()) is named
    assert matched(described, RULES, ()) is described


@pytest.mark.parametrize(
    "rules", [MatchRules(semantic=False), MatchRules(semantic_off=frozenset({"production"}))]
)
def test_descriptions_can_be_switched_off(rules: MatchRules) -> None:
    with pytest.raises(RequestError) as refused:
        matched(message(Match.SEMANTIC, "who sings"), rules, ())

    assert refused.value.error_code == "semantic_match_off"


def test_switched_off_in_one_environment_they_are_on_in_another() -> None:
    rules = MatchRules(semantic_off=frozenset({"production"}))
    elsewhere = message(Match.SEMANTIC, "who sings", "staging")

    assert matched(elsewhere, rules, ()) is elsewhere
