"""Hand-written calibrations."""

from collections.abc import Sequence
from dataclasses import replace

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.curve import Curve
from dispatcher.routing.stored_calibration import State, Stored, Unreadable

OWN = Stored(
    recorded=Recorded(
        calibration=Calibration(
            encoder_id="hashing",
            registry_version=3,
            kind="self",
            floor=0.2,
            curve=Curve(slope=10.0, intercept=-2.0),
        ),
        contrast="c",
    ),
    number=1,
    state=State.IN_FORCE,
    held=False,
    made_by="dispatcher",
    changed_by="dispatcher",
    created_ms=1,
    changed_ms=2,
)


class StubCalibrations:
    """The registry's own in force, a labelled one proposed, and one of another encoder."""

    def __init__(self) -> None:
        own = OWN.recorded.calibration
        labelled = replace(own, kind="labelled", floors={Capability("order.query"): 0.3})
        foreign = replace(labelled, encoder_id="other")
        self.stored = {
            1: OWN,
            2: _proposed(2, labelled),
            3: _proposed(3, foreign),
        }
        self.unreadable: list[Unreadable] = []
        self.changed: list[tuple[int, State, str]] = []

    async def list(self) -> Sequence[Stored | Unreadable]:
        return [*self.unreadable, *(self.stored[number] for number in sorted(self.stored, reverse=True))]

    async def show(self, number: int) -> Stored:
        if number not in self.stored:
            raise RequestError("There is no calibration of this number.", code="not_found")
        return self.stored[number]

    async def change(self, number: int, state: State, by: str) -> Stored:
        known = await self.show(number)
        if known.recorded.calibration.encoder_id != "hashing":
            raise RequestError("it was made with another encoder", code="other_encoder")
        self.changed.append((number, state, by))
        return replace(known, state=state, changed_by=by)


def _proposed(number: int, made: Calibration) -> Stored:
    report = {"rows": {"inside": 40}}
    recorded = replace(OWN.recorded, calibration=made)
    return replace(OWN, number=number, state=State.PROPOSED, recorded=recorded, report=report, made_by="root")
