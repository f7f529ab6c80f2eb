"""When a new calibration is used: at once, or after approval. Pure; takes well under a second."""

from dataclasses import dataclass

from dispatcher.routing.calibration import Calibration, calibrate, observe, refused_share
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.leave_one_out import Registered
from dispatcher.routing.reference import Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What never changes while the encoder is the same: background vectors and reference rows."""

    background: Vectors
    reference: Reference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The calibration in use, and a newer one that waits for approval."""

    used: Calibration
    pending: Calibration | None = None
    refused: float = 0.0
    """The share of the registered examples that the newest one refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRules:
    """See `rules.RoutingRules`."""

    similarity_floor: float
    approval_margin: float


def fit(
    registry: Registered, fixed: Fixed, made_of: tuple[str, int], old: Fitted | None, rules: FitRules
) -> Fitted:
    """Calibrate the registry; `made_of` is the encoder id and the registry version.

    A new curve that refuses over `approval_margin` more of the registered examples than the old
    one would waits; the old one stays in use meanwhile. Only fitted curves are compared.
    """
    observed = observe(registry, fixed.background)
    new = calibrate(observed, fixed.reference, len(registry.capabilities), made_of)
    refused = refused_share(new, observed, rules.similarity_floor)
    if old is None or old.used.curve is None or new.curve is None:
        return Fitted(used=new, refused=refused)
    before = refused_share(old.used, observed, rules.similarity_floor)
    if refused - before > rules.approval_margin:
        return Fitted(used=old.used, pending=new, refused=refused)
    return Fitted(used=new, refused=refused)
