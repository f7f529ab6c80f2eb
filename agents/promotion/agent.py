"""Current offers, and the best one for an amount."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from dispatcher.sdk import Agent, Entity, From, Reply, TaskView

agent = Agent("promotion", version="1.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One row of the data file: from `minimum` yuan, `off` yuan or `percent`, `most` yuan at most."""

    code: str
    minimum: float
    off: float
    percent: float
    most: float
    zh: str
    en: str


class QuoteQuestion(BaseModel):
    """The amount to reduce, in yuan: from the text, or from the order asked about in the same message."""

    amount: Annotated[float | None, From("order.query/amount"), Entity("amount"), Field(ge=0)] = None


class Quote(BaseModel):
    """The best offer for `amount`; without an amount, or without a fitting offer, only the list."""

    offers: list[str]
    amount: float | None = None
    best_offer: str | None = None
    discount: float | None = None
    final_amount: float | None = None


@agent.handler(
    "promotion.quote",
    description=[
        "优惠计算：当前的优惠券、满减、折扣和会员价，哪种最划算、能省多少钱、券为什么不能用、能不能叠加。",
        (
            "Knows current coupons, discounts and member prices and works out the best price: how much "
            "can be saved, why a code is not accepted, whether offers can be combined."
        ),
    ],
    examples=[
        "最近有什么折扣活动",
        "这单能便宜多少钱",
        "怎么买最划算",
        "有可以领的优惠券吗",
        "满减怎么算，能和会员价一起用吗",
        "优惠码提示无法使用",
        "2000 元的东西打折后多少钱",
        "are there any offers at the moment",
        "how much can I save on this order",
        "do you have a coupon for me",
        "what would 500 yuan cost after the discount",
        "my promo code is not accepted",
        "can I combine a voucher with the member price",
    ],
    idempotent=True,
    timeout_s=10.0,
)
def quote(question: QuoteQuestion, task: TaskView) -> Reply[Quote]:
    """The best offer for the amount, or the list of offers."""
    offers = load_offers()
    names = [offer.zh if task.is_chinese else offer.en for offer in offers]
    if question.amount is None:
        return Reply(text=_listing(names, chinese=task.is_chinese), data=Quote(offers=names))
    best, discount = best_offer(offers, question.amount)
    answer = Quote(
        offers=names,
        amount=question.amount,
        best_offer=best.code if best else None,
        discount=float(discount),
        final_amount=float(_money(question.amount) - discount),
    )
    return Reply(text=_sentence(answer, best, chinese=task.is_chinese), data=answer)


def best_offer(offers: Sequence[Offer], amount: float) -> tuple[Offer | None, Decimal]:
    """The offer that takes most off and how much that is; the first of equals, None where none fits."""
    best: tuple[Offer | None, Decimal] = (None, Decimal("0.00"))
    for offer in offers:
        discount = reduction(offer, amount)
        if discount > best[1]:
            best = (offer, discount)
    return best


def reduction(offer: Offer, amount: float) -> Decimal:
    """What the offer takes off, in yuan to the cent, never more than the amount."""
    if amount < offer.minimum:
        return Decimal("0.00")
    off = _money(offer.off) + _money(amount) * Decimal(str(offer.percent)) / 100
    return _money(float(min(off, _money(offer.most), _money(amount))))


@cache
def load_offers() -> tuple[Offer, ...]:
    """The data file, read at the first question."""
    rows = json.loads(Path(__file__).with_name("offers.json").read_text(encoding="utf-8"))
    return tuple(Offer(**row) for row in rows)


def _money(amount: float) -> Decimal:
    return Decimal(str(amount)).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _listing(names: Sequence[str], *, chinese: bool) -> str:
    if chinese:
        return f"当前优惠：{'；'.join(names)}。"
    return f"Current offers: {'; '.join(names)}."


def _sentence(answer: Quote, best: Offer | None, *, chinese: bool) -> str:
    amount, final = f"{answer.amount:.2f}", f"{answer.final_amount:.2f}"
    if best is None:
        if chinese:
            return f"{amount} 元目前没有可用的优惠。{_listing(answer.offers, chinese=True)}"
        return f"No offer fits {amount} yuan. {_listing(answer.offers, chinese=False)}"
    if chinese:
        return (
            f"{amount} 元最划算的是“{best.zh}”（{best.code}），"
            f"可省 {answer.discount:.2f} 元，实付 {final} 元。"
        )
    return (
        f"The best offer for {amount} yuan is {best.code} ({best.en}): "
        f"you save {answer.discount:.2f} yuan and pay {final} yuan."
    )
