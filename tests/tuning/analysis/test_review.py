"""One message's decisions, as its caller reads them."""

import pytest

from dispatcher.tuning.analysis.review import conclusion, heading, review, share_name, weighted


def candidate(agent, capability, similarity, rejection=None):
    return {
        "agent_id": agent,
        "capability": capability,
        "similarity": similarity,
        "success": 0.8,
        "headroom": 1.0,
        "score": 0.5 * similarity + 0.44,
        "rejection": rejection,
    }


def decision(*others, outcome="selected", agent="order", similarity=0.8, position=0):
    reason = None if agent else "below_scope_floor"
    return {
        "position": position,
        "text": "where is it",
        "outcome": outcome,
        "reason": "highest_score",
        "agent_id": agent,
        "capability": "order.query",
        "similarity": similarity,
        "scope_score": 0.4,
        "scope_floor": 0.19,
        "weights": {"similarity": 0.5, "success": 0.3, "headroom": 0.2},
        "candidates": [candidate("order", "order.query", similarity, reason), *others],
    }


def other(similarity):
    return candidate("faq", "faq.answer", similarity, "other_capability")


def test_a_score_is_the_sum_of_its_shares():
    made = decision(other(0.3))

    row, neighbour = weighted(made)

    shares = [f"{row[share_name(made['weights'], name)]}" for name in ("similarity", "success", "headroom")]
    assert sum(map(float, shares)) == pytest.approx(row["score"])
    assert (row["left out because"], neighbour["left out because"]) == ("chosen", "other_capability")


def test_a_heading_says_who_took_it_and_why():
    assert "Part 1: where is it** → **order**, selected (highest_score; scope 0.40" in heading(decision())
    assert "→ **nobody**, out_of_scope" in heading(decision(agent=None, outcome="out_of_scope"))


@pytest.mark.parametrize(
    ("made", "action", "is_fine"),
    [
        (decision(other(0.3)), "keep", True),
        (decision(other(0.75)), "sharpen the examples of both capabilities", False),
        (decision(), "keep", True),
        (decision(agent=None, outcome="out_of_scope"), "leave it refused", True),
        (decision(agent=None, outcome="unavailable"), "look after the agents", False),
    ],
)
def test_what_to_do_follows_from_outcome_and_lead(made, action, is_fine):
    found = review(made)

    assert found.action.startswith(action)
    assert found.is_fine is is_fine


def test_the_lead_is_over_the_next_capability():
    found = review(decision(other(0.3), other(0.5)))

    assert found.second == "faq.answer"
    assert found.ahead == pytest.approx(0.3)
    assert review(decision()).second == "-"


def test_the_conclusion_names_the_closest_call_that_somebody_took():
    parts = [decision(other(0.75)), decision(other(0.1), position=1)]
    refused = decision(other(0.79), agent=None, outcome="out_of_scope", position=2)

    assert conclusion([review(one) for one in (*parts, refused)]) == (
        "**Decision: work on 1 of 3 parts.** Watch part 1, the closest call: faq.answer is 0.05 behind."
    )
    assert conclusion([review(refused)]) == "**Decision: change nothing.**"
