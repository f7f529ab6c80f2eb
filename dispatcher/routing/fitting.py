"""When a new calibration is used: at once, after approval, or not at all. Pure; takes well under a second."""

from dataclasses import dataclass, replace

from dispatcher.routing.calibration import Calibration, Observed, calibrate, observe, refused_share
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.leave_one_out import Registered
from dispatcher.routing.ordering import LexicalShares, Ordering, fit_ordering
from dispatcher.routing.reference import Reference
from dispatcher.routing.shadow import Shadow

FLOOR_TOLERANCE = 0.002
"""Calibrations whose floors differ by no more, in score, may be one: the arithmetic of replicas differs."""
SIMILARITY_TOLERANCE = 0.005
"""The same of their probabilities at the floor and on both sides of it."""
AROUND = 0.1
"""How far from the floor these are looked at, in contrastive score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What never changes while the encoder is the same: background vectors and reference rows."""

    background: Vectors
    reference: Reference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The calibration in use, a newer one that waits for approval, and the order of capabilities."""

    used: Calibration
    ordering: Ordering
    pending: Calibration | None = None
    refused: float = 0.0
    """The share of the registered examples that the newest one refuses."""
    newest: Calibration | None = None
    """What self-calibration gives for the registry as it is, used or not."""
    observed: Observed | None = None
    """The rows it is made of, without vectors."""
    shadow: Shadow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What all replicas have agreed on: the stored calibration in force, and the one in shadow.

    One that `is_held` is used whatever the registry's own says; any other is a self-calibration, which a
    newer one replaces.
    """

    base: Calibration | None
    is_held: bool = False
    shadow: Shadow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRules:
    """See `rules.RoutingRules`."""

    similarity_floor: float
    approval_margin: float
    lexical: LexicalShares


def fit(
    registry: Registered,
    fixed: Fixed,
    made_of: tuple[str, int],
    old: Fitted | None,
    rules: FitRules,
    given: Given | None = None,
) -> Fitted:
    """Calibrate the registry; `made_of` is the encoder id and the registry version.

    A new curve that refuses over `approval_margin` more of the registered examples than the old
    one would waits; the old one stays in use meanwhile. Only fitted curves are compared. The old one is
    that in force where anything is `given`.
    """
    observed = observe(registry, fixed.background)
    new = calibrate(observed, fixed.reference, len(registry.capabilities), made_of)
    fitted = Fitted(
        used=new,
        ordering=fit_ordering(registry, observed.left_out, fixed.background, rules.lexical),
        refused=refused_share(new, observed, rules.similarity_floor),
        newest=new,
        observed=replace(observed, left_out=None),
    )
    if given is not None:
        return agree(fitted, given, rules)
    return fitted if old is None else _after(fitted, new, old.used, rules)


def agree(fitted: Fitted, given: Given, rules: FitRules) -> Fitted:
    """Use what is in force, or the registry's own where that may replace it; again it gives the same.

    Of one registry version what is in force stays: replicas that calibrate apart agree on the first one
    stored. One that can't be used here is no base, and waits to be replaced.
    """
    new, base = fitted.newest or fitted.used, given.base
    own = replace(fitted, used=new, pending=None, shadow=given.shadow)
    if base is None:
        return own
    if given.is_held or new.registry_version <= base.registry_version or is_like(new, base):
        # Twins are the registry's, whatever the floor was fitted on.
        return replace(own, used=base if base.twins == new.twins else replace(base, twins=new.twins))
    return _after(own, new, base, rules)


def is_like(new: Calibration, old: Calibration) -> bool:
    """Whether both decide alike, but for what the arithmetic of two machines may differ by."""
    if (new.kind, new.encoder_id, new.floors) != (old.kind, old.encoder_id, old.floors):
        return False
    if abs(new.floor - old.floor) > FLOOR_TOLERANCE or (new.curve is None) != (old.curve is None):
        return False
    looked_at = (old.floor - AROUND, old.floor, old.floor + AROUND)
    apart = (abs(new.similarity_of(at) - old.similarity_of(at)) for at in looked_at)
    return new.curve is None or max(apart) <= SIMILARITY_TOLERANCE


def _after(fitted: Fitted, new: Calibration, old: Calibration, rules: FitRules) -> Fitted:
    if old.curve is None or new.curve is None or fitted.observed is None:
        return fitted
    before = refused_share(old, fitted.observed, rules.similarity_floor)
    if fitted.refused - before > rules.approval_margin:
        return replace(fitted, used=old, pending=new)
    return fitted
