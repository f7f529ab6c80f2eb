"""Replicas of a router with its book, and agents for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.identifiers import Capability
from dispatcher.registry.agent import Agent
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_book import CalibrationBook
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.curve import Curve
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.reindex import ReindexingRouter
from dispatcher.routing.stored_calibration import (
    Made,
    State,
    Wanted,
)
from dispatcher.store.calibrations import SqlCalibrations
from tests.routing.conftest import build_agent, build_capability

GOOD = build_agent(
    "g",
    build_capability(
        "parcel",
        "tracks the parcel",
        "where is the parcel",
        "the parcel is late",
        "my parcel tracking",
        "parcel tracking please",
    ),
)
MORE = build_agent(
    "m", build_capability("refund", "pays the refund", "I want a refund", "refund me", "where is my refund")
)
VAGUE = build_agent("v", build_capability("vague", "x", "what", "how", "who", "why"))
VAGUER = build_agent(
    "w", build_capability("vaguer", "the what", "how do I do it", "what is the thing", "who is that")
)
ENCODER = HashingEncoder.encoder_id
LABELLED = Calibration(
    encoder_id=ENCODER,
    registry_version=1,
    kind="labelled",
    floor=0.05,
    curve=Curve(slope=20.0, intercept=-1.0),
    floors={Capability("refund"): 0.9},
)


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A router with its book."""

    router: ReindexingRouter
    book: CalibrationBook
    store: SqlCalibrations

    async def sync(self, agents: Sequence[Agent], version: int) -> None:
        await self.router.sync(agents, version)
        await self.book.look()

    @property
    def used(self) -> Calibration:
        assert self.router.calibration is not None
        return self.router.calibration

    async def states(self) -> Sequence[tuple[int, str, str]]:
        found = reversed(await self.store.list(100))
        return [(one.number, one.origin, one.state.value) for one in found]

    async def change(self, number: int, state: State) -> None:
        await self.store.change(Wanted(number=number, state=state, by="admin"), self.book.in_use)

    async def propose(self, calibration: Calibration, contrast: str = contrast_digest()) -> int:
        recorded = Recorded(calibration=calibration, contrast=contrast)
        return await self.store.propose(Made(recorded=recorded, made_by="admin"))
