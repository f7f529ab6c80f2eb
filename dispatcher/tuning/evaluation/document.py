"""Figures and where they come from as JSON values."""

from collections.abc import Iterable, Mapping
from typing import Any

from dispatcher.tuning.basis.dataset import Dataset
from dispatcher.tuning.basis.metrics import Figure
from dispatcher.tuning.basis.product import Product
from dispatcher.tuning.basis.versions import versions
from dispatcher.tuning.evaluation.routed import Bare, Figures


def described(figures: Figures, names: Iterable[str]) -> dict[str, Any]:
    """Each figure by its name, null where it is left out; then intervals, counts and reasons."""
    found, names = figures.found, tuple(names)
    valued: Mapping[str, Figure | Bare] = {**figures.bare, **found}
    return {
        **{name: rounded(valued[name].value) if name in valued else None for name in names},
        "intervals": {name: _interval(found[name]) for name in names if name in found},
        "counts": {name: valued[name].of for name in names if name in valued},
        "left_out": dict(figures.left_out),
    }


def provenance(dataset: Dataset, unseen: Dataset, product: Product, seed: int) -> Mapping[str, Any]:
    """What the result was made from and with; `unseen` is what of the set was asked."""
    return {
        "seed": seed,
        "agents": len(dataset.agents),
        "examples": dataset.examples,
        "requests": len(dataset.requests),
        "messages": len(dataset.messages),
        "renamed": dict(dataset.renamed),
        "shortened": dataset.shortened,
        "repeated_texts": unseen.repeated_texts,
        "registered_texts": dataset.texts - unseen.texts,
        "versions": versions(product, dataset),
    }


def rounded(value: float) -> float:
    """To four decimals."""
    return round(value, 4)


def _interval(figure: Figure) -> list[float]:
    return [rounded(figure.low), rounded(figure.high)]
