"""From what a caller calls a capability to its name."""

import pytest

from dispatcher.dispatch.lifecycle.match import MatchRules, matched, plain
from dispatcher.dispatch.lifecycle.request import ChatMessage, Match
from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from tests.dispatch.builders import ORDER, QUOTE

RULES = MatchRules(
    synonyms={
        plain("Track Order"): ORDER,
        plain("查订单"): ORDER,
        plain(QUOTE): ORDER,
        plain("gone"): Capability("x.y"),
    },
    semantic=True,
)
KNOWN = {ORDER, QUOTE}


def allows_all(_: Capability) -> bool:
    return True


def refusal(asked: ChatMessage, *granted: str, all_granted: bool = False) -> str:
    """The code of the refusal for a caller who may use these."""
    with pytest.raises(RequestError) as refused:
        matched(asked, RULES, KNOWN, lambda name: all_granted or name in granted)
    return refused.value.error_code


def message(match: Match, wanted: str | None, environment: str = "production") -> ChatMessage:
    return ChatMessage(message="a message", environment=environment, match=match, wanted=wanted)


def loose(wanted: str) -> ChatMessage:
    return matched(message(Match.LOOSE, wanted), RULES, KNOWN, allows_all)


@pytest.mark.parametrize("wanted", ["order.query", "track order", "ＴＲＡＣＫ   order", " 查订单 "])
def test_a_name_or_an_alias_is_found_loosely(wanted: str) -> None:
    assert (loose(wanted).capability, loose(wanted).wanted) == (ORDER, None)


def test_a_name_goes_before_an_alias() -> None:
    assert loose(QUOTE).capability == QUOTE


@pytest.mark.parametrize("wanted", ["sing a song", "order.query", "查订单", "gone", "x.y"])
def test_whoever_has_no_grant_can_not_tell_what_is_there(wanted: str) -> None:
    strict = ChatMessage(message="a message", environment="production", capability=Capability(wanted))

    assert refusal(message(Match.LOOSE, wanted), QUOTE) == "capability_not_granted"
    assert refusal(strict, QUOTE) == "capability_not_granted"


def test_what_may_be_used_and_nobody_declares_is_unknown() -> None:
    for wanted in ("gone", "x.y"):
        assert refusal(message(Match.LOOSE, wanted), "x.y") == "unknown_capability"
    assert refusal(message(Match.LOOSE, "sing a song"), all_granted=True) == "unknown_capability"


def test_a_message_that_says_nothing_or_describes_stays_as_it_is() -> None:
    named = ChatMessage(message="a message", environment="production", capability=ORDER)
    silent = ChatMessage(message="a message", environment="production")
    described = message(Match.SEMANTIC, "who sings")

    for one in (named, silent, described):
        assert matched(one, RULES, KNOWN, allows_all) is one


@pytest.mark.parametrize(
    "rules", [MatchRules(), MatchRules(semantic=True, semantic_off=frozenset({"production"}))]
)
def test_descriptions_are_off_unless_they_are_switched_on(rules: MatchRules) -> None:
    with pytest.raises(RequestError) as refused:
        matched(message(Match.SEMANTIC, "who sings"), rules, (), allows_all)

    assert refused.value.error_code == "semantic_match_off"


def test_switched_off_in_one_environment_they_are_on_in_another() -> None:
    rules = MatchRules(semantic=True, semantic_off=frozenset({"production"}))
    elsewhere = message(Match.SEMANTIC, "who sings", "staging")

    assert matched(elsewhere, rules, (), allows_all) is elsewhere
