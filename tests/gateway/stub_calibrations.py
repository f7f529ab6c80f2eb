"""Hand-written calibrations."""

from collections.abc import Sequence
from dataclasses import replace

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.stored_calibration import State, Stored, Unreadable, not_readable
from tests.routing.stored import OWN, stored

IN_FORCE = stored(number=1, state=State.IN_FORCE)


class StubCalibrations:
    """The registry's own in force, a labelled one proposed, and one of another encoder."""

    def __init__(self) -> None:
        labelled = replace(OWN, kind="labelled", floors={Capability("order.query"): 0.3})
        foreign = replace(labelled, encoder_id="other")
        self.stored = {
            1: IN_FORCE,
            2: _proposed(2, labelled),
            3: _proposed(3, foreign),
        }
        self.unreadable: dict[int, Unreadable] = {}
        self.changed: list[tuple[int, State, str]] = []

    async def list(self) -> Sequence[Stored | Unreadable]:
        return [
            *self.unreadable.values(),
            *(self.stored[number] for number in sorted(self.stored, reverse=True)),
        ]

    async def show(self, number: int) -> Stored:
        if number in self.unreadable:
            raise not_readable()
        if number not in self.stored:
            raise RequestError("There is no calibration of this number.", code="not_found")
        return self.stored[number]

    async def change(self, number: int, state: State, by: str) -> Stored | Unreadable:
        if number in self.unreadable and state is State.RETIRED:
            return replace(self.unreadable[number], state=state, changed_by=by)
        known = await self.show(number)
        if known.recorded.calibration.encoder_id != "hashing":
            raise RequestError("it was made with another encoder", code="other_encoder")
        self.changed.append((number, state, by))
        return replace(known, state=state, changed_by=by)


def _proposed(number: int, made: Calibration) -> Stored:
    report = {"rows": {"inside": 40}}
    return stored(made, number=number, report=report, made_by="root")
