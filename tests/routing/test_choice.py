"""From a ranking to a decision: every outcome, with all candidates and reasons."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher import records
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import Hours
from dispatcher.registry.agent import AgentStatus, Liveness
from dispatcher.routing.candidates import GLANCE_S
from dispatcher.routing.choice import Choice, Registry
from dispatcher.routing.curve import Curve
from dispatcher.routing.decision import Outcome, Rejection, Weights
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.rules import ClarifyRules, RoutingRules
from dispatcher.routing.score import composite


class StoppedClock:
    """A decision takes no time: equal decisions stay equal."""

    now = 0.0

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        raise NotImplementedError


REGISTRY = Registry(
    similarity=Curve(slope=10, intercept=-3), keys=5, encoder_id="encoder", version=3, calibration="self"
)
IDLE = AgentStatus(liveness=Liveness.ALIVE, capacity=10, running=0, draining=False)
FULL = replace(IDLE, running=10)
GONE = replace(IDLE, liveness=Liveness.OFFLINE, capacity=0)


def _entry(name, **cosines):
    best = max(cosines.values())
    return CapabilityScore(
        capability=Capability(name),
        agent_cosines={AgentId(agent): cosine for agent, cosine in cosines.items()},
        cosine=best,
        similarity=float(REGISTRY.similarity(np.array(best - 0.1))),
        score=best,
    )


RANKING = Ranking(
    text="where is my parcel",
    capabilities=(_entry("track", a=0.8, b=0.7), _entry("refund", a=0.78, c=0.5), _entry("faq", d=0.1)),
    scope_score=0.7,
    scope_floor=0.2,
    in_scope=True,
    encoder_id="encoder",
    registry_version=3,
    calibration="self",
    contrast=0.1,
    scale=0.5,
)
OUTSIDE = records.replace(RANKING, in_scope=False, scope_score=0.1)


@pytest.fixture(autouse=True)
def registered(directory, an_agent, a_capability):
    track, refund, faq = (a_capability(name, f"does {name}") for name in ("track", "refund", "faq"))
    directory.agents += [an_agent("a", track, refund), an_agent("b", track)]
    directory.agents += [an_agent("c", refund), an_agent("d", faq)]


@pytest.fixture
def decide(directory, a_query):
    def call(ranking=RANKING, rules=None, **query):
        choice = Choice(directory, rules or RoutingRules(), REGISTRY, StoppedClock())
        return choice.decide(a_query(**query), ranking)

    return call


def _reasons(decision):
    return {(one.capability, one.agent_id): one.rejection for one in decision.candidates}


def test_the_best_agent_of_the_winning_capability_is_chosen(decide):
    decision = decide()

    assert (decision.outcome, decision.capability, decision.agent_id) == (Outcome.SELECTED, "track", "a")
    assert decision.reason == "highest_score"
    assert _reasons(decision) == {
        ("track", "a"): None,
        ("track", "b"): Rejection.OUTRANKED,
        ("refund", "a"): Rejection.OTHER_CAPABILITY,
        ("refund", "c"): Rejection.OTHER_CAPABILITY,
        ("faq", "d"): Rejection.OTHER_CAPABILITY,
    }
    assert decision.left_out == {}


def test_every_factor_of_the_score_is_kept(decide, directory):
    directory.statuses["a"] = replace(IDLE, running=3)
    directory.successes["a"] = 0.6

    first = decide().candidates[1]

    assert first.agent_id == "a"
    assert (first.cosine, first.success, first.headroom) == pytest.approx((0.8, 0.6, 0.7))
    assert first.similarity == pytest.approx(float(REGISTRY.similarity(np.array(0.7))))
    assert first.score == pytest.approx(0.5 * first.similarity + 0.3 * 0.6 + 0.2 * 0.7)


def test_of_every_candidate_the_factors_are_kept_that_it_had(directory, a_query):
    clock, weights = StoppedClock(), Weights()
    choice = Choice(directory, RoutingRules(), REGISTRY, clock)
    for running, success in ((0, 0.8), (4, 0.3), (7, 0.9)):
        clock.now += GLANCE_S
        for agent in directory.agents:
            directory.statuses[agent.agent_id] = replace(IDLE, running=running)
            directory.successes[agent.agent_id] = success

        decision = choice.decide(a_query(), RANKING)

        cosines = [cosine for entry in RANKING.capabilities for cosine in entry.agent_cosines.values()]
        assert sorted(one.cosine for one in decision.candidates) == sorted(cosines)
        for one in decision.candidates:
            assert one.similarity == float(REGISTRY.similarity(np.array(one.cosine - RANKING.contrast)))
            assert (one.success, one.headroom) == (success, 1 - running / 10)
            assert one.score == composite(weights, one.similarity, one.success, one.headroom)


def test_who_competes_is_seen_as_of_now_and_who_does_not_as_of_a_moment_ago(directory, a_query):
    clock = StoppedClock()
    choice = Choice(directory, RoutingRules(), REGISTRY, clock)
    choice.decide(a_query(), RANKING)
    directory.statuses |= {one.agent_id: replace(IDLE, running=4) for one in directory.agents}
    directory.successes |= {one.agent_id: 0.3 for one in directory.agents}
    clock.now += GLANCE_S * 0.9

    own, near, far = choice.decide(a_query(), RANKING).candidates[1:4]

    assert [(one.success, one.headroom) for one in (own, near, far)] == [(0.3, 0.6), (0.8, 1.0), (0.8, 1.0)]
    assert [own.capability, near.capability] == ["track", "refund"]
    clock.now += GLANCE_S * 0.1
    assert {one.headroom for one in choice.decide(a_query(), RANKING).candidates} == {0.6}


def test_a_look_at_a_neighbour_serves_every_text(directory, a_query):
    choice = Choice(directory, RoutingRules(), REGISTRY, StoppedClock())
    other = records.replace(RANKING, text="find my parcel", contrast=0.2)
    first = choice.decide(a_query(), RANKING)
    directory.statuses["d"] = FULL

    again = choice.decide(a_query(text=other.text), other)

    assert (again.candidates[-1].agent_id, again.candidates[-1].headroom) == ("d", 1.0)
    assert again.candidates[-1].similarity != first.candidates[-1].similarity


def test_load_and_success_choose_within_the_group_only(decide, directory):
    directory.statuses |= {"a": replace(IDLE, running=8), "b": replace(IDLE, running=7)}
    directory.successes |= {"a": 0.2, "b": 0.7}

    decision = decide()

    assert (decision.capability, decision.agent_id) == ("track", "b")


def test_below_the_scope_floor_nobody_is_asked(decide):
    decision = decide(OUTSIDE)

    assert (decision.outcome, decision.agent_id) == (Outcome.OUT_OF_SCOPE, None)
    assert decision.reason == "below_scope_floor"
    assert _reasons(decision)["track", "a"] is Rejection.BELOW_SCOPE_FLOOR
    assert decision.retry_after_s is None


def test_not_granted_looks_out_of_scope_and_the_next_capability_is_not_tried(decide):
    decision = decide(allows=lambda capability: capability != "track")

    assert (decision.outcome, decision.reason) == (Outcome.OUT_OF_SCOPE, "not_granted")
    assert decision.agent_id is None


@pytest.mark.parametrize(
    ("status", "query", "reason"),
    [(GONE, {}, "offline"), (IDLE, {"environment": "staging"}, "environment")],
)
def test_a_winner_without_agents_is_unavailable_and_the_next_capability_is_not_tried(
    decide, directory, status, query, reason
):
    directory.statuses |= {"a": status, "b": status}

    decision = decide(**query)

    assert (decision.outcome, decision.capability, decision.agent_id) == (Outcome.UNAVAILABLE, "track", None)
    assert (decision.reason, decision.retry_after_s) == (reason, 5)


def test_the_reason_is_the_step_that_the_last_agent_reached(decide, directory, an_agent, a_capability):
    hours = Hours(start="01:00", end="02:00")
    directory.agents[1] = an_agent("b", a_capability("track", "does track"), available_hours=hours)
    directory.statuses["a"] = GONE

    assert decide().reason == "offline"


def test_a_saturated_group_gives_it_to_the_least_bad_one_without_a_floor(decide, directory):
    directory.statuses |= {"a": FULL, "b": replace(IDLE, running=9)}
    directory.successes |= {"a": 0.0, "b": 0.0}

    decision = decide(rules=RoutingRules(composite_floor=1.0))

    assert (decision.outcome, decision.agent_id) == (Outcome.SELECTED, "b")
    assert decision.reason == "least_bad_of_saturated"
    assert _reasons(decision)["track", "a"] is Rejection.OUTRANKED


def test_below_the_composite_floor_nobody_is_chosen(decide):
    decision = decide(rules=RoutingRules(composite_floor=1.0))

    assert (decision.outcome, decision.reason) == (Outcome.UNAVAILABLE, "below_composite_floor")
    assert _reasons(decision)["track", "b"] is Rejection.BELOW_COMPOSITE_FLOOR


def test_one_above_the_composite_floor_is_chosen_and_the_other_says_why_not(decide, directory):
    directory.successes["b"] = 0.0

    decision = decide(rules=RoutingRules(composite_floor=0.8))

    assert decision.agent_id == "a"
    assert _reasons(decision)["track", "b"] is Rejection.BELOW_COMPOSITE_FLOOR


def test_a_capability_named_by_the_caller_skips_the_floors(decide):
    decision = decide(None, capability="refund", similarity=1.0)

    assert (decision.outcome, decision.capability, decision.agent_id) == (Outcome.SELECTED, "refund", "a")
    assert decision.similarity == 1
    assert [one.similarity for one in decision.candidates] == [1, 1]
    assert decision.left_out == {"other_capability": 3}


def test_a_decided_capability_takes_its_cosines_from_the_ranking(decide):
    decision = decide(OUTSIDE, capability="track", similarity=0.9)

    assert (decision.outcome, decision.agent_id) == (Outcome.SELECTED, "a")
    assert decision.candidates[0].cosine == pytest.approx(0.8)
    assert decision.similarity == RANKING.capabilities[0].similarity


def test_a_named_capability_outside_the_ranking_has_the_given_similarity(
    decide, directory, an_agent, a_capability
):
    directory.agents.append(an_agent("z", a_capability("rare", "does rare")))

    decision = decide(capability="rare", similarity=1.0)

    assert (decision.agent_id, decision.similarity) == ("z", 1)
    assert len(decision.candidates) == 6


def test_an_unknown_capability_is_unavailable(decide):
    decision = decide(None, capability="nobody.knows", similarity=1.0)

    assert (decision.outcome, decision.reason) == (Outcome.UNAVAILABLE, "unknown_capability")
    assert decision.candidates == ()


def test_agents_of_near_capabilities_are_on_record_where_the_wished_one_is_gone(decide, directory):
    directory.agents[:] = directory.agents[2:]

    decision = decide(rules=RoutingRules(margin=0.05, group_kept=1))

    assert (decision.outcome, decision.reason) == (Outcome.UNAVAILABLE, "unknown_capability")
    assert _reasons(decision)["refund", "c"] is Rejection.OTHER_CAPABILITY
    directory.agents[:0] = [replace(directory.agents[0], agent_id=AgentId("a"))]
    again = decide(rules=RoutingRules(margin=0.05, group_kept=1))
    assert again.left_out == {"other_capability": 3}


def test_nothing_registered_is_out_of_scope(decide):
    decision = decide(records.replace(RANKING, capabilities=(), in_scope=False))

    assert (decision.outcome, decision.reason) == (Outcome.OUT_OF_SCOPE, "nothing_registered")
    assert decide(None).reason == "nothing_registered"


def test_a_margin_admits_near_capabilities(decide, directory):
    directory.statuses |= {"a": replace(IDLE, running=8), "b": replace(IDLE, running=8)}
    wide = records.replace(RANKING, capabilities=(_entry("track", a=0.8, b=0.7), _entry("refund", c=0.79)))

    assert decide(wide).agent_id == "a"
    near = decide(wide, rules=RoutingRules(margin=0.05))
    assert (near.capability, near.agent_id) == ("refund", "c")
    assert decide(wide, rules=RoutingRules(margin=0.01)).capability == "track"


def test_a_near_capability_that_is_not_granted_is_left_out(decide):
    rules = RoutingRules(margin=0.05)

    decision = decide(rules=rules, allows=lambda capability: capability == "track")

    assert decision.agent_id == "a"
    assert _reasons(decision)["refund", "c"] is Rejection.NOT_GRANTED


def test_an_agent_that_came_after_the_ranking_may_be_chosen(decide, directory, an_agent, a_capability):
    directory.agents.append(an_agent("new", a_capability("track", "does track")))
    directory.statuses |= {"a": GONE, "b": GONE}

    assert decide().agent_id == "new"


def test_agents_that_left_after_the_ranking_are_not_listed(decide, directory):
    directory.agents[:] = directory.agents[:2]

    assert set(_reasons(decide())) == {("track", "a"), ("track", "b"), ("refund", "a")}


def test_no_more_candidates_are_kept_than_allowed(decide):
    decision = decide(rules=RoutingRules(neighbours_kept=1, group_kept=1))

    assert set(_reasons(decision)) == {("track", "a"), ("refund", "a")}
    assert decision.left_out == {"other_capability": 2, "outranked": 1}


def test_a_decision_says_what_a_language_model_had_to_do_with_it(decide):
    assert decide().advice == ()
    assert decide(records.replace(RANKING, advice=("split",))).advice == ("split",)


def test_a_decision_says_what_it_was_made_with(decide):
    decision = decide()

    assert (decision.encoder_id, decision.registry_version, decision.calibration) == ("encoder", 3, "self")
    assert (decision.scope_score, decision.scope_floor) == (0.7, 0.2)
    assert decision.weights == Weights()


def test_the_order_in_which_agents_registered_changes_nothing(decide, directory):
    first = decide()

    directory.agents.reverse()

    assert decide() == first


def test_equal_agents_go_by_id(decide):
    even = records.replace(RANKING, capabilities=(_entry("track", a=0.8, b=0.8),))

    assert decide(even).agent_id == "a"


ASKS = RoutingRules(clarify=ClarifyRules(margin=0.05))


def test_between_near_capabilities_the_person_is_asked_and_nobody_gets_it(decide):
    decision = decide(rules=ASKS)

    assert (decision.outcome, decision.reason, decision.agent_id) == (Outcome.CLARIFY, "ambiguous", None)
    assert [option.capability for option in decision.options] == ["track", "refund"]
    assert decision.options[0].similarity == RANKING.capabilities[0].similarity
    assert _reasons(decision)["track", "a"] is Rejection.AMBIGUOUS
    assert decide().options == ()


def test_an_earlier_choice_is_not_asked_about_again(decide):
    assert decide(rules=ASKS, capability=Capability("track")).outcome is Outcome.CLARIFY
    assert decide(rules=ASKS, capability=Capability("refund")).outcome is Outcome.SELECTED
    assert decide(None, rules=ASKS, capability=Capability("track")).outcome is Outcome.SELECTED


def test_what_is_not_granted_or_of_another_environment_is_no_option(
    decide, directory, an_agent, a_capability
):
    assert decide(rules=ASKS, allows=lambda one: one != "refund").outcome is Outcome.SELECTED

    refund = a_capability("refund", "does refund")
    directory.agents = [one for one in directory.agents if one.agent_id not in {"a", "c"}]
    directory.agents += [an_agent("c", refund, environment="staging")]
    assert decide(rules=ASKS).outcome is Outcome.SELECTED


def test_twins_are_not_asked_about(directory, a_query):
    registry = replace(REGISTRY, twins=frozenset({(Capability("refund"), Capability("track"))}))
    choice = Choice(directory, ASKS, registry, StoppedClock())

    assert choice.decide(a_query(), RANKING).outcome is Outcome.SELECTED


def test_winner_contrast_and_what_was_ranked_are_kept(decide):
    alone = decide()
    together = decide(records.replace(RANKING, text="my order. where is my parcel"))
    unranked = decide(None, capability="track")

    assert (alone.winner, alone.contrast, alone.ranked_text) == ("track", RANKING.contrast, None)
    assert together.ranked_text == "my order. where is my parcel"
    assert (unranked.winner, unranked.contrast, unranked.ranked_text) == (None, None, None)
