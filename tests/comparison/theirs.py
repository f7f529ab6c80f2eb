"""The other side, in an environment of its own: semantic-router over the texts and vectors that we wrote.

`python -m tests.comparison.theirs FOLDER` prints one JSON line with what every setting makes of the rows,
then one with the milliseconds of every setting for each line on standard input. `tests.comparison` does that.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, TextIO

from semantic_router import Route
from semantic_router.encoders import DenseEncoder, TfidfEncoder
from semantic_router.routers import IndexedRouter

from tests.comparison.figures import Choice, best_floor, figures, floor_that_rejects
from tests.comparison.material import Material, Row, read_material
from tests.comparison.sample import WARM, sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One way to set the library up.

    `described`: the descriptions are utterances too. `lexical`: the weight of its TF-IDF encoder beside the
    vectors, in [0, 1); 0 is without it, 0.3 its own default.
    """

    aggregation: str
    described: bool
    top_k: int = 5
    lexical: float = 0.0

    @property
    def name(self) -> str:
        """For people."""
        described = ", descriptions" if self.described else ""
        lexical = f", TF-IDF {self.lexical}" if self.lexical else ""
        return f"{self.aggregation}, top {self.top_k}{described}{lexical}"


class LookUp(DenseEncoder):  # type: ignore[misc] # the library is in the other environment only
    """Gives the vectors that were written, as arrays, which the library takes faster than lists."""

    vectors: dict[str, Any]

    def __call__(self, docs: list[str]) -> list[Any]:
        return [self.vectors[text] for text in docs]

    async def acall(self, docs: list[str]) -> list[Any]:
        return self(docs)


def settings() -> Iterator[Setting]:
    """All that are tried. 5 is the library's own `top_k`; the highest of 20 is the highest of 5."""
    for described, aggregation in product((False, True), ("mean", "max", "sum")):
        yield Setting(aggregation=aggregation, described=described)
        if aggregation != "max":
            yield Setting(aggregation=aggregation, described=described, top_k=20)
    for aggregation, lexical in (("max", 0.1), ("sum", 0.1), ("sum", 0.3)):
        yield Setting(aggregation=aggregation, described=True, lexical=lexical)


def build(material: Material, setting: Setting) -> IndexedRouter:
    """A router with every route of the material."""
    routes = [
        Route(
            name=route.name,
            utterances=[*route.examples, *(route.descriptions if setting.described else ())],
            description=" ".join(route.descriptions),
        )
        for route in material.routes
    ]
    return IndexedRouter(
        encoder=LookUp(name="look-up", vectors=material.vector_of()),
        routes=routes,
        aggregation=setting.aggregation,
        top_k=setting.top_k,
        sparse_encoder=TfidfEncoder() if setting.lexical else None,
        alpha=1 - setting.lexical,
    )


async def fit(router: IndexedRouter, rows: Sequence[Row]) -> float:
    """Its own calibration on these rows, then the floor of confidence that is best for them."""
    wanted = [row.wanted[0] if row.wanted else None for row in rows]
    await router.afit([row.text for row in rows], wanted, method="platt")
    return best_floor(await choices(router, rows))


async def choices(router: IndexedRouter, rows: Sequence[Row]) -> list[Choice]:
    """What it makes of each row."""
    made = []
    for row in rows:
        best = await router.acall(row.text, threshold=0.0)
        made.append(
            Choice(
                is_inside=bool(row.wanted),
                is_right=best.name in row.wanted,
                confidence=float(best.confidence),
            )
        )
    return made


async def measure(material: Material, router: IndexedRouter) -> dict[str, float | None]:
    """Fitted on one half, its figures on the other.

    `kept_at_our_rejection` is what it would keep there with the floor, chosen with hindsight, that rejects
    at least as many as we do.
    """
    floor = await fit(router, material.half(for_fitting=True))
    # From here on it says whether a text is in scope, as ours does; without, it lists every route for each.
    router.confidence_threshold = floor
    rows = material.half(for_fitting=False)
    made = await choices(router, rows)
    ours = figures([row.choice for row in rows], 1.0)
    matched = figures(made, floor_that_rejects(made, ours["rejected"] or 0.0))
    return {**figures(made, floor), "kept_at_our_rejection": matched["kept_right"]}


async def milliseconds(router: IndexedRouter, texts: Sequence[str]) -> float:
    """The median time of a choice, a route or none, awaited in a running loop, which is its faster way."""
    taken = []
    for text in texts:
        started = time.perf_counter()
        await router.acall(text)
        taken.append((time.perf_counter() - started) * 1000)
    return median(taken[WARM:])


def main(folder: Path, answers: TextIO) -> None:
    """Measure, then time whenever a line comes in."""
    material = read_material(folder)
    routers = {setting: build(material, setting) for setting in settings()}
    texts = sample(material.half(for_fitting=False))
    with asyncio.Runner() as runner:
        found = [
            {"name": one.name, **asdict(one), **runner.run(measure(material, router))}
            for one, router in routers.items()
        ]
        _say(answers, {"version": version("semantic-router"), "settings": found})
        for _line in sys.stdin:
            _say(
                answers,
                {one.name: runner.run(milliseconds(router, texts)) for one, router in routers.items()},
            )


def _say(answers: TextIO, document: object) -> None:
    answers.write(json.dumps(document) + "\n")
    answers.flush()


if __name__ == "__main__":
    ours = sys.stdout
    with redirect_stdout(sys.stderr):
        main(Path(sys.argv[1]), ours)
