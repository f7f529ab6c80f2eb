"""Reads changes of terms as an analyst writes them: `weights.similarity=0.6`, `floor=0.4`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from dispatcher.errors import ConfigurationError
from dispatcher.routing.decision import Weights
from dispatcher.tuning.decisions.replay import Terms

_WEIGHTS = ("similarity", "success", "headroom")
_FLOORS = ("similarity_floor", "composite_floor", "saturation", "scope_floor")
NAMES = (*(f"weights.{name}" for name in _WEIGHTS), "floor", *_FLOORS)
"""What can be set. `floor` is both published floors; `scope_floor` is on the encoder's contrastive scale."""


def change_terms(terms: Terms, assignments: Sequence[str]) -> Terms:
    """The terms with these `name=value` changes.

    Weights that are not named share what the named ones leave, in their old proportion. Raises
    ConfigurationError for an unknown name, a value that is no number in its range, or a name given twice.
    """
    given = _read(assignments)
    weights = {name: given[f"weights.{name}"] for name in _WEIGHTS if f"weights.{name}" in given}
    floor = given.get("floor")
    return replace(
        terms,
        weights=_weights(terms.weights, weights),
        similarity_floor=given.get("similarity_floor", terms.similarity_floor if floor is None else floor),
        composite_floor=given.get("composite_floor", terms.composite_floor if floor is None else floor),
        saturation=given.get("saturation", terms.saturation),
        scope_floor=given.get("scope_floor", terms.scope_floor),
    )


def _read(assignments: Sequence[str]) -> Mapping[str, float]:
    given: dict[str, float] = {}
    for assignment in assignments:
        name, _, text = assignment.partition("=")
        name = name.strip()
        if name not in NAMES:
            raise ConfigurationError(f"there is no term {name!r}; there are {', '.join(NAMES)}")
        if name in given:
            raise ConfigurationError(f"{name} is set twice")
        given[name] = _number(name, text)
    return given


def _number(name: str, text: str) -> float:
    low = -1.0 if name == "scope_floor" else 0.0
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= 1:
        raise ConfigurationError(f"{name} must be a number between {low:g} and 1")
    return value


def _weights(old: Weights, named: Mapping[str, float]) -> Weights:
    rest = {name: value for name, value in asdict(old).items() if name not in named}
    left = 1.0 - sum(named.values())
    if left < -1e-9 or (not rest and abs(left) > 1e-9):
        raise ConfigurationError("the weights of similarity, success and headroom must sum to 1")
    kept = sum(rest.values())
    if rest and kept <= 0 < left - 1e-9:
        raise ConfigurationError("the weights that are not named are all 0: name one of them as well")
    shared = {name: max(left, 0.0) * value / kept if kept else 0.0 for name, value in rest.items()}
    return Weights(**named, **shared)
