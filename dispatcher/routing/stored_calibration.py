"""Calibrations by number: which states they go through, and what keeps them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from dispatcher.errors import RequestError
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.fitting import is_like

SELF = "self"
DISPATCHER = "dispatcher"
"""Who makes self-calibrations and changes their state when nobody else does."""
LISTED = 200
"""How many of the newest a list shows; older ones can still be asked for by number."""


class State(StrEnum):
    """What a stored calibration is used for."""

    PROPOSED = "proposed"
    SHADOW = "shadow"
    """Asked beside the one in force; at most one of each encoder."""
    IN_FORCE = "in_force"
    """At most one of each encoder."""
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A calibration to be stored; `report` says how it was fitted and measured."""

    recorded: Recorded
    made_by: str
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """`self`, `labelled` or `traffic`."""
        kind = self.recorded.calibration.kind
        return SELF if kind in {SELF, "reference", "uncalibrated"} else kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Made):
    """One that is stored; times in milliseconds since the epoch.

    `held` tells that a person put it in force, other than by approving a proposal of the dispatcher's: no
    self-calibration takes its place.
    """

    number: int
    state: State
    held: bool
    changed_by: str
    created_ms: int
    changed_ms: int

    @property
    def encoder_id(self) -> str:
        """The encoder it was made with."""
        return self.recorded.calibration.encoder_id

    @property
    def named(self) -> Calibration:
        """The calibration as decisions name it: with its number, unless it is the registry's own."""
        made = self.recorded.calibration
        return made if self.origin == SELF else replace(made, kind=f"{made.kind} {self.number}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """One of a later version, in a form that this one can't read; the rest as of `Stored`."""

    number: int
    encoder_id: str
    origin: str
    state: State
    held: bool
    made_by: str
    changed_by: str
    created_ms: int
    changed_ms: int


def brief(stored: Stored | Unreadable) -> dict[str, object]:
    """What lists show of one; the registry version and the floor of an unreadable one are None."""
    made = stored.recorded.calibration if isinstance(stored, Stored) else None
    return {
        "number": stored.number,
        "state": stored.state.value,
        "held": stored.held,
        "origin": stored.origin,
        "encoder_id": stored.encoder_id,
        "registry_version": None if made is None else made.registry_version,
        "scope_floor": None if made is None else made.floor,
        "made_by": stored.made_by,
        "changed_by": stored.changed_by,
        "created_ms": stored.created_ms,
        "changed_ms": stored.changed_ms,
    }


class Mark(NamedTuple):
    """What changes of a stored calibration."""

    number: int
    state: State
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """The encoder that is in use, and what its scores are measured with."""

    encoder_id: str
    contrast: str

    def check(self, recorded: Recorded) -> None:
        """Raise RequestError `other_encoder` or `other_contrast` for one that can't be used here."""
        other = recorded.calibration.encoder_id
        if other != self.encoder_id:
            raise RequestError(
                f"it was made with the encoder {other!r}, and {self.encoder_id!r} is in use",
                code="other_encoder",
            )
        if recorded.contrast != self.contrast:
            raise RequestError(
                "it was made by a version that measures scores in another way; fit it again",
                code="other_contrast",
            )

    def takes(self, recorded: Recorded) -> bool:
        """Whether it can be used here."""
        return recorded.calibration.encoder_id == self.encoder_id and recorded.contrast == self.contrast


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A state that a calibration should have, and who says so."""

    number: int
    state: State
    by: str


class CalibrationRepository(Protocol):
    """Where calibrations are kept. Every method is atomic and durable when it returns."""

    async def marks(self, encoder_id: str) -> Sequence[Mark]:
        """Those in force and in shadow of one encoder: a short query, asked every second by every replica."""
        ...

    async def read(self, number: int) -> Stored | None:
        """One of them; raises ConfigurationError for one of a form that this version can't read."""
        ...

    async def list(self, limit: int) -> Sequence[Stored | Unreadable]:
        """The newest ones, newest first."""
        ...

    async def propose(self, made: Made) -> int:
        """Store it as proposed; the number it got, counted from 1."""
        ...

    async def propose_once(self, made: Made) -> None:
        """Store a self-calibration as proposed, unless one like it of that registry version is stored.

        Older proposals of the dispatcher for the encoder are retired, and a few of those kept. What is
        stored in an unknown form stays as it is.
        """
        ...

    async def supersede(self, expected: int | None, made: Made) -> bool:
        """Put a self-calibration in force in place of the `expected` one.

        False, and nothing changes, if that one is not in force or a person holds it. A few of those that
        were in force before are kept.
        """
        ...

    async def change(self, wanted: Wanted, in_use: InUse) -> Stored | Unreadable:
        """Put a calibration into another state; what is in its place gives way.

        Raises RequestError `not_found`, or for one to be used `not_readable` and as `InUse.check` does.
        """
        ...


def not_readable() -> RequestError:
    """What is said of a calibration that is listed as unreadable, where all of it is needed."""
    return RequestError("It has a form that this version can't read.", code="not_readable")


def is_repeated(made: Made, stored: Stored) -> bool:
    """Whether a self-calibration was stored before, in whatever state it is now."""
    new, old = made.recorded, stored.recorded
    if (new.contrast, new.calibration.registry_version) != (old.contrast, old.calibration.registry_version):
        return False
    return stored.origin == SELF and is_like(new.calibration, old.calibration)


def is_held(stored: Stored, wanted: State, newest: int) -> bool:
    """Whether a person holds it in force with this; approving what the dispatcher proposed does not.

    `newest` is the latest registry version that the dispatcher made one of for the encoder. An older one
    is no proposal any more, also where it was put in shadow: using it is going back.
    """
    is_proposal = stored.origin == SELF and stored.made_by == DISPATCHER
    is_waiting = stored.state in {State.PROPOSED, State.SHADOW}
    is_approval = is_proposal and is_waiting and stored.recorded.calibration.registry_version >= newest
    return wanted is State.IN_FORCE and not is_approval
