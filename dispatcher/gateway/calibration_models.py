"""Bodies and replies about calibrations."""

from typing import Literal

from pydantic import JsonValue

from dispatcher.gateway.bodies import Body
from dispatcher.gateway.models import Reply


class StateBody(Body):
    """The state that a calibration should have; `in_force` and `shadow` take the place of another one."""

    state: Literal["in_force", "shadow", "retired"]


class CalibrationReply(Reply):
    """A stored calibration. `held` is true of one that a person put in force; times in ms since the epoch.

    `registry_version` and `scope_floor` are null for one of a form that this version can't read.
    """

    number: int
    encoder_id: str
    origin: Literal["self", "labelled", "traffic"]
    state: Literal["proposed", "shadow", "in_force", "retired"]
    held: bool
    registry_version: int | None
    scope_floor: float | None
    made_by: str
    changed_by: str
    created_ms: int
    changed_ms: int


class CalibrationsReply(Reply):
    """Calibrations, newest first."""

    calibrations: list[CalibrationReply]


class CalibrationDetailReply(CalibrationReply):
    """A calibration with what it was measured to do, and all of it as JSON.

    Both are null for one that was retired, and is of a form that this version can't read.
    """

    report: dict[str, JsonValue] | None
    document: dict[str, JsonValue] | None
