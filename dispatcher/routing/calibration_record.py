"""Calibrations as JSON documents: what is stored, and read back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.curve import Curve

FORM = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A calibration as it was made; `contrast` names what its scores are measured with, see `background`."""

    calibration: Calibration
    contrast: str


def calibration_document(recorded: Recorded) -> dict[str, Any]:
    """The calibration as a JSON object; numbers stay as they are to the last bit."""
    made = recorded.calibration
    curve = made.curve
    return {
        "form": FORM,
        "contrast": recorded.contrast,
        "encoder_id": made.encoder_id,
        "registry_version": made.registry_version,
        "kind": made.kind,
        "floor": made.floor,
        "curve": None if curve is None else {"slope": curve.slope, "intercept": curve.intercept},
        "floors": dict(sorted(made.floors.items())),
        "twins": sorted(map(list, made.twins)),
    }


def read_calibration(document: Mapping[str, Any]) -> Recorded:
    """The calibration that `calibration_document` made; members of later versions are ignored.

    Raises ConfigurationError for a document of another form.
    """
    try:
        if document["form"] != FORM:
            raise _unreadable()
        curve = document["curve"]
        made = Calibration(
            encoder_id=document["encoder_id"],
            registry_version=document["registry_version"],
            kind=document["kind"],
            floor=document["floor"],
            curve=None if curve is None else Curve(slope=curve["slope"], intercept=curve["intercept"]),
            floors={Capability(name): floor for name, floor in document["floors"].items()},
            twins=frozenset((Capability(one), Capability(other)) for one, other in document["twins"]),
        )
        return Recorded(calibration=made, contrast=document["contrast"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _unreadable() from None


def _unreadable() -> ConfigurationError:
    return ConfigurationError("this calibration was stored in a form that this version can't read")
