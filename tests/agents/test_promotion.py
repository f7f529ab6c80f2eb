"""The promotion agent's sums."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.promotion import agent
from agents.promotion.agent import best_offer, load_offers, reduction
from dispatcher.protocol.frames import ResultStatus


@pytest.mark.parametrize(
    ("amount", "offer", "discount", "final"),
    [
        (2999.0, "AUTUMN200", 200.0, 2799.0),
        (1999.99, "MEMBER5", 100.0, 1899.99),
        (300.0, "SAVE50", 50.0, 250.0),
        (59.9, "MEMBER5", 3.0, 56.9),
        (0.0, None, 0.0, 0.0),
    ],
)
async def test_the_best_offer_is_taken_off_the_amount(ask, amount, offer, discount, final):
    outcome = await ask(agent, "?", {"amount": amount})

    data = outcome.result.data
    assert (data["best_offer"], data["discount"], data["final_amount"]) == (offer, discount, final)


@pytest.mark.parametrize(
    ("language", "said"),
    [("zh", "可省 200.00 元，实付 2799.00 元"), ("en", "you save 200.00 yuan and pay 2799.00 yuan")],
)
async def test_the_sum_is_told_in_the_persons_language(ask, language, said):
    assert said in (await ask(agent, "?", {"amount": 2999.0}, language=language)).result.text


@pytest.mark.parametrize(
    ("language", "said"), [("zh", "当前优惠：满 2000 元减 200 元；"), ("en", "Current offers:")]
)
async def test_without_an_amount_the_offers_are_listed(ask, language, said):
    outcome = await ask(agent, "?", language=language)

    assert outcome.result.text.startswith(said)
    assert outcome.result.data["amount"] is None
    assert len(outcome.result.data["offers"]) == 3


@pytest.mark.parametrize(("language", "said"), [("zh", "没有可用的优惠"), ("en", "No offer fits")])
async def test_where_nothing_fits_it_says_so(ask, language, said):
    assert said in (await ask(agent, "?", {"amount": 0}, language=language)).result.text


async def test_a_negative_amount_is_refused(ask):
    outcome = await ask(agent, "?", {"amount": -1})

    assert (outcome.status, outcome.error_code) == (ResultStatus.ERROR, "invalid_input")


@given(amount=st.floats(min_value=0, max_value=1e7))
def test_nobody_pays_less_than_nothing_and_no_offer_beats_the_best(amount):
    _, best = best_offer(load_offers(), amount)

    assert Decimal(0) <= best <= Decimal(str(amount)) + Decimal("0.005")
    assert all(reduction(offer, amount) <= best for offer in load_offers())
