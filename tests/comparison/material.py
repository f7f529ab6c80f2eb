"""The files over which the two environments meet: texts, what they want, their vectors, and our choices.

Neither side's libraries are needed to read them, only numpy.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.comparison.figures import Choice

ROWS = "material.json"
VECTORS = "vectors.npy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A capability with the texts that it is registered with."""

    name: str
    descriptions: Sequence[str]
    examples: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A request, the routes that are right for it (none where it is out of scope), and what we made of it.

    `chosen` is what we like best, `accepted` whether it passed our floors. `is_for_fitting` says in which
    half it is.
    """

    text: str
    wanted: Sequence[str]
    is_for_fitting: bool
    chosen: str
    accepted: bool

    @property
    def choice(self) -> Choice:
        """Ours; accepted ones from 1 on."""
        return Choice(
            is_inside=bool(self.wanted), is_right=self.chosen in self.wanted, confidence=float(self.accepted)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """`texts` are all texts of routes and rows, once each; `vectors` has a row of length 1 for each.

    `about` is where it comes from: data set, encoder, versions.
    """

    about: Mapping[str, object]
    routes: Sequence[Route]
    rows: Sequence[Row]
    texts: Sequence[str]
    vectors: NDArray[np.float32]

    def half(self, *, for_fitting: bool) -> list[Row]:
        """The rows to fit on, or those to measure with."""
        return [row for row in self.rows if row.is_for_fitting == for_fitting]

    def vector_of(self) -> dict[str, NDArray[np.float32]]:
        """Each text's vector."""
        return dict(zip(self.texts, self.vectors, strict=True))


def all_texts(routes: Sequence[Route], texts: Sequence[str]) -> list[str]:
    """Every text once, those of routes first."""
    registered = (text for route in routes for text in (*route.descriptions, *route.examples))
    return list(dict.fromkeys([*registered, *texts]))


def write_material(folder: Path, material: Material) -> None:
    """Two files in a folder that is there."""
    document = {
        "about": dict(material.about),
        "routes": [asdict(route) for route in material.routes],
        "rows": [asdict(row) for row in material.rows],
        "texts": list(material.texts),
    }
    (folder / ROWS).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    np.save(folder / VECTORS, material.vectors, allow_pickle=False)


def read_material(folder: Path) -> Material:
    """What was written; ValueError where a text has no vector."""
    document = json.loads((folder / ROWS).read_text(encoding="utf-8"))
    material = Material(
        about=document["about"],
        routes=[Route(**route) for route in document["routes"]],
        rows=[Row(**row) for row in document["rows"]],
        texts=document["texts"],
        vectors=np.load(folder / VECTORS, allow_pickle=False),
    )
    needed = all_texts(material.routes, [row.text for row in material.rows])
    if material.texts != needed or len(material.vectors) != len(needed):
        raise ValueError("texts and vectors don't belong together")
    return material
