"""Hand-written calibrations as they are stored."""

from dataclasses import replace
from typing import Any

from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.curve import Curve
from dispatcher.routing.stored_calibration import State, Stored, Unreadable

OWN = Calibration(
    encoder_id="hashing",
    registry_version=3,
    kind="self",
    floor=0.2,
    curve=Curve(slope=10.0, intercept=-2.0),
)
UNREADABLE = Unreadable(
    number=4,
    encoder_id="hashing",
    origin="self",
    state=State.PROPOSED,
    held=False,
    made_by="dispatcher",
    changed_by="dispatcher",
    created_ms=1,
    changed_ms=2,
)
"""A proposal of the dispatcher's in a later version's form."""
_READABLE = Stored(
    recorded=Recorded(calibration=OWN, contrast="c"),
    **{
        name: getattr(UNREADABLE, name)
        for name in Unreadable.__slots__
        if name not in {"encoder_id", "origin"}
    },
)


def stored(calibration: Calibration = OWN, *, contrast: str = "c", **changes: Any) -> Stored:
    """A proposal of the dispatcher's, but for `changes`."""
    return replace(_READABLE, recorded=Recorded(calibration=calibration, contrast=contrast), **changes)
