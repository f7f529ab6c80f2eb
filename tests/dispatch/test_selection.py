from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from dispatcher import records
from dispatcher.clock import SystemClock
from dispatcher.dispatch.fallback import BELOW_BAR, REASON, Fallback, FallbackKind
from dispatcher.dispatch.lifecycle.request import Task
from dispatcher.dispatch.planning import Planned
from dispatcher.dispatch.selection import Selection
from dispatcher.identifiers import AgentId, CallerId, Capability
from dispatcher.intents.plan import Plan
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.decision import Decision, Option, Outcome
from dispatcher.routing.router import Query, Ranking, Router
from tests.dispatch.builders import ORDER, QUOTE, accepted, decision, intent, task_of

GROUP = ("a1", "a2", "a3")


class FirstUntried:
    """Routing and directory of three agents: the first that was not tried is chosen, else the first."""

    def decide(self, query: Query, ranking: object) -> Decision:
        return decision(next((agent for agent in GROUP if agent not in query.tried), GROUP[0]))

    def group(self, capability: str) -> Sequence[object]:
        return [SimpleNamespace(agent_id=agent, capability=lambda _: None) for agent in GROUP]


def selection() -> Selection:
    both = FirstUntried()
    return Selection(
        router=cast("Router", both),
        directory=cast("AgentDirectory", both),
        grants=lambda _: None,
        calendar=SystemClock(),
    )


def chosen(task: Task, *tried: str, only: str | None = None) -> AgentId | None:
    request, agents = accepted().request, frozenset(map(AgentId, tried))
    if only is not None:
        return selection().choose_only(AgentId(only), request, intent(0), task, agents).decision.agent_id
    return selection().choose(request, intent(0), task, agents).decision.agent_id


@pytest.mark.parametrize("agent", GROUP)
def test_of_many_agents_the_wanted_one_is_chosen(agent: str) -> None:
    assert chosen(task_of(accepted()), only=agent) == agent


def test_nobody_is_chosen_in_the_place_of_one_that_is_not_there() -> None:
    assert chosen(task_of(accepted()), only="gone") is None


@pytest.mark.parametrize(
    ("repeat", "idempotent", "agent"),
    [(0, False, "a1"), (1, True, "a1"), (1, False, "a2")],
)
def test_what_is_repeated_and_must_not_run_twice_stays_with_its_agent(
    repeat: int, idempotent: bool, agent: str
) -> None:
    task = records.replace(task_of(accepted()), repeat=repeat, idempotent=idempotent, agent_id=AgentId("a2"))

    assert chosen(task) == agent


def test_it_stays_there_even_after_that_agent_refused_it() -> None:
    task = records.replace(task_of(accepted()), repeat=1, idempotent=False, agent_id=AgentId("a1"))

    assert chosen(task, "a1") == "a1"


NET = Capability("ask.anything")
NOTHING = Ranking(
    text="a message",
    capabilities=(),
    scope_score=0.1,
    scope_floor=0.2,
    in_scope=False,
    encoder_id="test",
    registry_version=1,
    calibration="self",
)


class Net:
    """Routing that has an agent for one capability alone, and whose caller may have no grant for it."""

    def __init__(self, *, granted: bool = True) -> None:
        self.granted = granted

    def decide(self, query: Query, ranking: object) -> Decision:
        if query.capability == NET and self.granted:
            return records.replace(decision("net"), capability=NET)
        return records.replace(decision(None, Outcome.OUT_OF_SCOPE), reason="below_scope_floor")

    def group(self, capability: str) -> Sequence[object]:
        return []


def refused(fallback: Fallback, *, described: str | None = None, granted: bool = True) -> Decision:
    """What is decided for a text that is out of scope."""
    routing = Net(granted=granted)
    router = SimpleNamespace(decide=lambda query, ranking=None: routing.decide(query, ranking))
    choosing = replace(
        selection(),
        router=cast("Router", router),
        directory=cast("AgentDirectory", routing),
        fallback=fallback,
    )
    outside = intent(0, None)
    planned = Planned(plan=Plan(intents=(outside,), language="en"), rankings=(NOTHING,), described=described)
    request, task = accepted(outside).request, records.replace(task_of(accepted(outside)), capability=None)
    return choosing.choose(request, outside, task, frozenset(), planned=planned).decision


def test_what_is_out_of_scope_is_told_handed_over_or_given_to_the_fallback() -> None:
    people = refused(Fallback(kind=FallbackKind.PEOPLE))
    net = refused(Fallback(kind=FallbackKind.AGENT, capability=NET))

    assert refused(Fallback()).outcome is Outcome.OUT_OF_SCOPE
    assert refused(Fallback(kind=FallbackKind.AGENT)).outcome is Outcome.OUT_OF_SCOPE
    assert people.outcome is Outcome.HANDED_OFF
    assert (net.agent_id, net.capability, net.reason) == ("net", NET, REASON)


def test_without_a_grant_nobody_gets_it_as_the_fallback() -> None:
    net = Fallback(kind=FallbackKind.AGENT, capability=NET)

    assert refused(net, granted=False).outcome is Outcome.OUT_OF_SCOPE


def test_a_description_that_nothing_fits_goes_to_a_person_whatever_the_fallback_is() -> None:
    for fallback in (Fallback(), Fallback(kind=FallbackKind.AGENT, capability=NET)):
        made = refused(fallback, described="who sings")

        assert (made.outcome, made.reason, made.text) == (Outcome.HANDED_OFF, BELOW_BAR, "who sings")


def test_what_the_caller_named_goes_nowhere_else() -> None:
    choosing = replace(selection(), router=cast("Router", Net()), fallback=Fallback(kind=FallbackKind.PEOPLE))

    made = choosing.choose(accepted().request, intent(0), task_of(accepted()), frozenset())

    assert made.decision.outcome is Outcome.OUT_OF_SCOPE


def test_what_the_fallback_got_is_tried_again_by_the_same_capability() -> None:
    choosing = replace(selection(), router=cast("Router", Net()))
    task = records.replace(task_of(accepted()), capability=NET)

    again = choosing.choose(accepted().request, intent(0, None), task, frozenset())

    assert again.decision.agent_id == "net"


def test_options_come_with_their_developers_words() -> None:
    class Torn(FirstUntried):
        def decide(self, query: Query, ranking: object) -> Decision:
            options = (Option(Capability("order.query"), 0.9), Option(NET, 0.8))
            return records.replace(decision(None, Outcome.CLARIFY), options=options)

        def group(self, capability: str) -> Sequence[object]:
            words = [] if capability == NET else ["查询订单", "looks up orders"]
            return [
                SimpleNamespace(capability=lambda _: SimpleNamespace(descriptions=words)),
                SimpleNamespace(capability=lambda _: None),
            ]

    both = Torn()
    choosing = replace(selection(), router=cast("Router", both), directory=cast("AgentDirectory", both))

    made = choosing.choose(accepted().request, intent(0), task_of(accepted()), frozenset())

    told = [(one.capability, one.description, one.similarity) for one in made.options]
    assert told == [("order.query", "looks up orders", 0.9), (NET, NET, 0.8)]


class Heard(FirstUntried):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.queries: list[Query] = []

    def decide(self, query: Query, ranking: object) -> Decision:
        self.queries.append(query)
        return super().decide(query, ranking)


def asked_again(
    task_capability: Capability | None, intent_capability: Capability | None
) -> tuple[object, float]:
    """The capability and the similarity that a further attempt of a task is decided with."""
    heard, wish = Heard(), intent(0, intent_capability)
    task = records.replace(task_of(accepted(wish)), capability=task_capability)
    choosing = replace(selection(), router=cast("Router", heard))
    choosing.choose(accepted(wish).request, wish, task, frozenset({AgentId("a1")}))
    return heard.queries[0].capability, heard.queries[0].similarity


def test_a_further_attempt_asks_for_what_the_first_one_asked_for() -> None:
    assert asked_again(QUOTE, ORDER) == (QUOTE, 0.9)
    assert asked_again(ORDER, ORDER) == (ORDER, 0.9)


def test_the_fallback_has_the_same_similarity_each_time() -> None:
    assert asked_again(NET, None) == (NET, 1.0)


GRANTS = {CallerId("shop"): frozenset({ORDER, NET}), CallerId("poor"): frozenset({ORDER})}


def would_need(
    fallback: Fallback,
    *capabilities: Capability | None,
    caller: str = "shop",
    ranked: bool = True,
    described: str | None = None,
) -> tuple[Sequence[object], bool]:
    """What a plan needs an agent of, and whether a part goes to a person."""
    choosing = replace(selection(), fallback=fallback, grants=GRANTS.get)
    wishes = tuple(intent(place, capability) for place, capability in enumerate(capabilities))
    rankings = (NOTHING,) * len(wishes) if ranked else ()
    planned = Planned(plan=Plan(intents=wishes, language="en"), rankings=rankings, described=described)
    return choosing.asked_for(CallerId(caller), planned), choosing.hands_over(CallerId(caller), planned)


def test_what_is_out_of_scope_needs_the_fallbacks_agents() -> None:
    net = Fallback(kind=FallbackKind.AGENT, capability=NET)

    assert would_need(net, ORDER, None, QUOTE) == ([ORDER, NET, NET], False)
    assert would_need(net, ORDER, None, caller="poor") == ([ORDER, None], False)
    assert would_need(net, None, QUOTE, caller="admin") == ([NET, QUOTE], False)
    assert would_need(net, QUOTE, ranked=False) == ([None], False)
    assert would_need(Fallback(), ORDER, None) == ([ORDER, None], False)


def test_it_is_known_whether_a_person_gets_a_part() -> None:
    people = Fallback(kind=FallbackKind.PEOPLE)
    net = Fallback(kind=FallbackKind.AGENT, capability=NET)

    assert would_need(people, ORDER, None) == ([ORDER, None], True)
    assert would_need(people, QUOTE) == ([None], True)
    assert would_need(people, ORDER) == ([ORDER], False)
    assert would_need(people, QUOTE, ranked=False) == ([None], False)
    assert would_need(net, None, described="who sings") == ([None], True)
    assert would_need(net, QUOTE, ranked=False, described="who quotes") == ([None], True)
    assert would_need(net, ORDER, ranked=False, described="who looks up") == ([ORDER], False)
