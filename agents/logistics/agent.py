"""Where a parcel is, by order number or the user's newest parcel."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from dispatcher.sdk import Agent, Entity, NeedsInput, Reply, TaskView

STATUS_ZH = {"in_transit": "运输途中", "out_for_delivery": "正在派送", "delivered": "已签收"}
STATUS_EN = {"in_transit": "on its way", "out_for_delivery": "out for delivery", "delivered": "delivered"}

agent = Agent("logistics", version="1.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One row of the data file: last seen `hours_ago` at `place`, due in `due_days`."""

    order_number: str
    user_id: str
    carrier_zh: str
    carrier_en: str
    tracking_number: str
    status: str
    place_zh: str
    place_en: str
    hours_ago: int
    due_days: int


class TrackQuestion(BaseModel):
    """Which parcel is meant; without an order number it is the user's newest."""

    order_number: Annotated[str | None, Entity("order_number")] = None


class ParcelState(BaseModel):
    """Where one parcel is; `due_in_days` is None once it is delivered."""

    order_number: str
    tracking_number: str
    carrier: str
    status: str
    place: str
    seen_hours_ago: int
    due_in_days: int | None


@agent.handler(
    "logistics.track",
    description=[
        "物流跟踪：包裹走到哪里、由哪家快递派送、几天能送到、为什么物流不更新、显示签收却没收到，以及改派送时间。",
        (
            "Tracks parcels on their way: the current location, the courier, the day of arrival, why "
            "tracking does not move, deliveries marked done but not received, and changes of the "
            "delivery time."
        ),
    ],
    examples=[
        "我的包裹现在走到哪里了",
        "快递还要几天才能送到",
        "物流信息一直不更新怎么办",
        "是哪家快递公司在送",
        "显示已签收可我没收到货",
        "能不能换个时间派送",
        "快递放在哪个代收点",
        "track the package of order 2024112233",
        "how far has my delivery come",
        "on which day will the package arrive",
        "the tracking has not moved for days",
        "which courier is delivering it",
        "it says delivered but nothing is here",
        "could the courier come in the evening instead",
    ],
    idempotent=True,
    timeout_s=10.0,
)
def track(question: TrackQuestion, task: TaskView) -> Reply[ParcelState] | NeedsInput:
    """Where the parcel is, or a question back when nobody can tell which one."""
    parcel = find(load_parcels(), question.order_number, task.user_id)
    if parcel is None:
        return _ask(question, task)
    delivered = parcel.status == "delivered"
    state = ParcelState(
        order_number=parcel.order_number,
        tracking_number=parcel.tracking_number,
        carrier=parcel.carrier_zh if task.is_chinese else parcel.carrier_en,
        status=parcel.status,
        place=parcel.place_zh if task.is_chinese else parcel.place_en,
        seen_hours_ago=parcel.hours_ago,
        due_in_days=None if delivered else parcel.due_days,
    )
    return Reply(text=describe(state, chinese=task.is_chinese), data=state)


def find(parcels: Sequence[Parcel], order_number: str | None, user_id: str | None) -> Parcel | None:
    """The parcel meant: never one of another user when the user is known."""
    mine = [parcel for parcel in parcels if user_id in (None, parcel.user_id)]
    if order_number is not None:
        return next((parcel for parcel in mine if parcel.order_number == order_number), None)
    if user_id is None:
        return None
    return min(mine, key=lambda parcel: parcel.hours_ago, default=None)


def describe(state: ParcelState, *, chinese: bool) -> str:
    """One or two sentences for the person who asked."""
    if chinese:
        due = "" if state.due_in_days is None else f"，{_due_zh(state.due_in_days)}"
        return (
            f"订单 {state.order_number} 的包裹由{state.carrier}承运（运单号 {state.tracking_number}），"
            f"目前{STATUS_ZH[state.status]}，{_seen_zh(state.seen_hours_ago)}在{state.place}{due}。"
        )
    due = "" if state.due_in_days is None else f" {_due_en(state.due_in_days)}"
    return (
        f"The parcel of order {state.order_number} ({state.carrier}, {state.tracking_number}) is "
        f"{STATUS_EN[state.status]}; it was last seen {_seen_en(state.seen_hours_ago)} at {state.place}.{due}"
    )


@cache
def load_parcels() -> tuple[Parcel, ...]:
    """The data file, read at the first question."""
    rows = json.loads(Path(__file__).with_name("parcels.json").read_text(encoding="utf-8"))
    return tuple(Parcel(**row) for row in rows)


def _ask(question: TrackQuestion, task: TaskView) -> NeedsInput:
    given = question.order_number
    if task.is_chinese:
        lead = f"订单 {given} 还没有物流信息，可能尚未发货。" if given else ""
        return NeedsInput(f"{lead}请提供要查询的订单号。", ("order_number",))
    lead = f"There is no parcel for order {given} yet; it may not have shipped. " if given else ""
    return NeedsInput(f"{lead}Which order number should I look for?", ("order_number",))


def _seen_zh(hours: int) -> str:
    return f"{hours} 小时前" if hours < 48 else f"{hours // 24} 天前"


def _seen_en(hours: int) -> str:
    return f"{hours} hours ago" if hours < 48 else f"{hours // 24} days ago"


def _due_zh(days: int) -> str:
    return "预计今天送达" if days == 0 else f"预计 {days} 天内送达"


def _due_en(days: int) -> str:
    return {0: "It should arrive today.", 1: "It should arrive tomorrow."}.get(
        days, f"It should arrive in {days} days."
    )
