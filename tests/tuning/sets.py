"""A small data set on disk, and the product with the encoder that needs no model."""

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from dispatcher.clock import SystemClock
from dispatcher.routing.embedder import Embedder, Vectors
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.rules import RoutingRules
from dispatcher.tuning.basis.product import Product

WORDS = {
    "Order": ("order status", "has my order shipped", "show my last order", "is order 12 paid"),
    "refund": ("refund my money", "I want a refund", "when does the refund come", "refund this purchase"),
    "weather": ("weather tomorrow", "will the weather be fine", "weather in Paris", "rainy weather today"),
}
ASKED = {
    "Order": ("what about my order", "order that has not shipped", "order number please", "my order, now"),
    "refund": ("please refund me", "refund for a coat", "I need my refund", "refund or else"),
    "weather": ("weather next week", "how is the weather", "weather at noon", "is the weather bad"),
}
STRANGE = ("quantum chromodynamics", "zebras yawn", "violin sonata in minor", "knit a jumper")


class Recording(HashingEncoder):
    """Remembers which texts came in one call."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        self.batches.append(list(texts))
        return super().encode(texts, as_passages=as_passages)


class Ticking:
    """Implements `Clock`; a millisecond passes whenever it is looked at."""

    def __init__(self) -> None:
        self._ticks = count()

    def monotonic(self) -> float:
        return next(self._ticks) / 1000

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def product(embedder: Embedder | None = None, **rules: float) -> Product:
    return Product(
        embedder=embedder or HashingEncoder(),
        make_index=ExactIndex,
        index="exact",
        rules=RoutingRules(**rules),  # type: ignore[arg-type] # only shares are given
        clock=SystemClock(),
    )


def tell(what: str, done: int, of: int) -> None:
    assert what
    assert 0 <= done <= of


def agent(name: str, examples: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    return {"id": name, "desc_en": f"I do {name}", "desc_zh": "", "examples": list(examples), **more}


def request(text: str, *agents: str, **more: Any) -> dict[str, Any]:
    return {"text": text, "lang": "en", "agents": list(agents), **more}


def write(folder: Path, **files: Sequence[Any]) -> Path:
    """`eval=rows` becomes eval.jsonl, and so on."""
    folder.mkdir(exist_ok=True)
    for name, rows in files.items():
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def shop(folder: Path) -> Path:
    """Three agents, twelve requests inside, four outside, two messages, three more examples."""
    inside = [request(text, name) for name, texts in ASKED.items() for text in texts]
    outside = [request(text, lang="xx") for text in STRANGE]
    return write(
        folder,
        agents=[agent(name, texts) for name, texts in WORDS.items()],
        eval=[*inside, *outside],
        multi=[
            request("what about my order? And how is the weather?", "Order", "weather"),
            request("I want a refund", "refund"),
        ],
        pool=[request(f"one more {name}", name) for name in WORDS],
    )
