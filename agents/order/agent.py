"""Order status, by order number, phone number, or the user's newest order that fits the words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from dispatcher.sdk import Agent, Entity, NeedsInput, Reply, TaskView

STATUS_ZH = {
    "unpaid": "待付款",
    "packing": "尚未发货",
    "shipped": "已发货",
    "delivered": "已送达",
    "cancelled": "已取消",
}
STATUS_EN = {
    "unpaid": "is waiting for payment",
    "packing": "has not shipped yet",
    "shipped": "has shipped",
    "delivered": "has been delivered",
    "cancelled": "was cancelled",
}

agent = Agent("order", version="1.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One row of the data file; `days_ago` counts from today, `reason` says why it is not further."""

    order_number: str
    user_id: str
    phone: str
    product_zh: str
    product_en: str
    words: list[str]
    amount: float
    status: str
    days_ago: int
    reason_zh: str | None
    reason_en: str | None


class OrderQuestion(BaseModel):
    """What tells which order is meant; without either it is the user's newest that fits the words."""

    order_number: Annotated[str | None, Entity("order_number")] = None
    phone: Annotated[str | None, Entity("phone")] = None


class OrderState(BaseModel):
    """One order; `amount` is in yuan."""

    order_number: str
    product: str
    amount: float
    status: str
    ordered_days_ago: int
    reason: str | None = None


@agent.handler(
    "order.query",
    description=[
        "查询订单：订单状态、是否付款成功、什么时候发货、为什么迟迟没有发出，也能催发货和列出最近买过的东西。",
        (
            "Looks up orders: their status, whether the payment went through, when they ship and why "
            "something bought has not been sent yet; lists recent purchases and can urge the warehouse."
        ),
    ],
    examples=[
        "帮我看看订单现在是什么状态",
        "下单好几天了还不发货是什么原因",
        "买的东西什么时候能发出",
        "订单 2024112233 处理到哪一步了",
        "催一催仓库尽快发货",
        "最近买过哪些东西",
        "付款成功了吗，订单生效没有",
        "what is the status of my order",
        "why has my order not been sent out yet",
        "when will the laptop I ordered ship",
        "did my order 2024112233 go through",
        "show me what I bought recently",
        "please hurry up with shipping my order",
    ],
    idempotent=True,
    timeout_s=10.0,
)
def query(question: OrderQuestion, task: TaskView) -> Reply[OrderState] | NeedsInput:
    """The order asked about, or a question back when nobody can tell which one."""
    order = find(load_orders(), question, task)
    if order is None:
        return _ask(question, task)
    reason = order.reason_zh if task.is_chinese else order.reason_en
    state = OrderState(
        order_number=order.order_number,
        product=order.product_zh if task.is_chinese else order.product_en,
        amount=order.amount,
        status=order.status,
        ordered_days_ago=order.days_ago,
        reason=reason,
    )
    return Reply(text=describe(state, chinese=task.is_chinese), data=state)


def find(orders: Sequence[Order], question: OrderQuestion, task: TaskView) -> Order | None:
    """The order meant: never one of another user when the user is known."""
    mine = [order for order in orders if task.user_id in (None, order.user_id)]
    if question.order_number is not None:
        return next((order for order in mine if order.order_number == question.order_number), None)
    if question.phone is not None:
        mine = [order for order in mine if order.phone == question.phone]
    elif task.user_id is None:
        return None
    text = task.text.lower()
    fitting = [order for order in mine if any(word in text for word in order.words)]
    return min(fitting or mine, key=lambda order: order.days_ago, default=None)


def describe(state: OrderState, *, chinese: bool) -> str:
    """One or two sentences for the person who asked."""
    if chinese:
        why = f"：{state.reason}" if state.reason else ""
        return (
            f"您{_when_zh(state.ordered_days_ago)}下单的{state.product}"
            f"（订单 {state.order_number}，{state.amount:.2f} 元）{STATUS_ZH[state.status]}{why}。"
        )
    why = f": {state.reason}" if state.reason else ""
    return (
        f"Your {state.product} (order {state.order_number}, {state.amount:.2f} yuan), ordered "
        f"{_when_en(state.ordered_days_ago)}, {STATUS_EN[state.status]}{why}."
    )


@cache
def load_orders() -> tuple[Order, ...]:
    """The data file, read at the first question."""
    rows = json.loads(Path(__file__).with_name("orders.json").read_text(encoding="utf-8"))
    return tuple(Order(**row) for row in rows)


def _ask(question: OrderQuestion, task: TaskView) -> NeedsInput:
    given = question.order_number or question.phone
    if task.is_chinese:
        lead = f"没有找到与 {given} 对应的订单，" if given else ""
        return NeedsInput(f"{lead}请提供订单号或下单时的手机号。", ("order_number", "phone"))
    lead = f"I can't find an order for {given}. " if given else ""
    return NeedsInput(
        f"{lead}Which order is it? Please give me its number or the phone number used for it.",
        ("order_number", "phone"),
    )


def _when_zh(days: int) -> str:
    return "今天" if days == 0 else f" {days} 天前"


def _when_en(days: int) -> str:
    return {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
