"""The shop's rules: the entry whose words fit the question best."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from dispatcher.sdk import Agent, Reply, TaskView

TOPICS_ZH = "退换货、发票、营业时间、付款方式、保修和运费"
TOPICS_EN = "returns, invoices, opening hours, payment, warranty and postage"

agent = Agent("faq", version="1.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the data file."""

    topic: str
    words: list[str]
    zh: str
    en: str


class Topic(BaseModel):
    """Which rule was told; None when no entry fits."""

    topic: str | None


@agent.handler(
    "faq.answer",
    description=[
        "解答店铺规则：退换货政策、开发票、营业时间、支持的付款方式、保修期限和运费说明。",
        (
            "Explains the shop's rules: return policy, invoices, opening hours, ways to pay, how long the "
            "warranty lasts and what shipping costs."
        ),
    ],
    examples=[
        "退货有什么规定",
        "几天之内可以无理由退换",
        "怎么开电子发票",
        "你们几点开门几点关门",
        "可以用哪些方式付款",
        "保修期是多久",
        "多少钱可以包邮",
        "how does your returns policy work",
        "until when can I send something back",
        "can I get an invoice in my company's name",
        "what are your opening hours",
        "which payment methods do you accept",
        "how long is the warranty",
        "how much is the shipping fee",
    ],
    idempotent=True,
    timeout_s=10.0,
)
def answer(task: TaskView) -> Reply[Topic]:
    """The rule asked about, or what can be asked."""
    entry = best_entry(load_entries(), task.text)
    if entry is None:
        hint = f"我可以介绍{TOPICS_ZH}。" if task.is_chinese else f"I can tell you about {TOPICS_EN}."
        return Reply(text=hint, data=Topic(topic=None))
    return Reply(text=entry.zh if task.is_chinese else entry.en, data=Topic(topic=entry.topic))


def best_entry(entries: Sequence[Entry], text: str) -> Entry | None:
    """The entry with most of its words' characters in the text; the first of equals, None without a hit."""
    lowered = text.lower()
    scores = [sum(len(word) for word in entry.words if word in lowered) for entry in entries]
    best = max(scores, default=0)
    return entries[scores.index(best)] if best else None


@cache
def load_entries() -> tuple[Entry, ...]:
    """The data file, read at the first question."""
    rows = json.loads(Path(__file__).with_name("entries.json").read_text(encoding="utf-8"))
    return tuple(Entry(**row) for row in rows)
