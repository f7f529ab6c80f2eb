"""SIGHUP in this process: what the new encoder goes by at once, and when the old one is let go."""

import asyncio
import signal
from dataclasses import replace

import pytest

from dispatcher.assembly.encoders import embedding
from dispatcher.assembly.running import local_settings, open_dispatcher
from dispatcher.cli.reload import reloading
from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.stored_calibration import InUse, Made, State, Wanted
from dispatcher.settings import EncoderSettings
from tests.routing.conftest import build_query
from tests.routing.embeddings_stub import embeddings_stub

AGENT = Agent(
    agent_id=AgentId("p"),
    declaration=Declaration(
        capabilities=[CapabilityDeclaration(name="parcel.track", descriptions=["I track parcels"])]
    ),
    digest="p",
    environment="production",
)


class ToldClock(SystemClock):
    """Sleeps until it is told to go on."""

    def __init__(self) -> None:
        self.slept: asyncio.Queue[float] = asyncio.Queue()
        self.goes_on = asyncio.Event()
        self.left = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.put_nowait(seconds)
        try:
            await self.goes_on.wait()
        finally:
            self.left.set()


@pytest.fixture
def endpoint():
    with embeddings_stub() as stub:
        yield EncoderSettings(name="openai", model="hashing", url=stub.url, dimensions=512)


@pytest.fixture
async def running(tmp_path):
    async with open_dispatcher(local_settings(tmp_path)) as opened:
        await opened.parts.router.sync([AGENT], 1)
        yield replace(opened, parts=replace(opened.parts, clock=ToldClock()))


async def _put_in_force(running, encoder_id: str) -> None:
    made = Calibration(encoder_id=encoder_id, registry_version=1, kind="labelled", floor=0.7, curve=None)
    store = running.parts.calibrations.store
    recorded = Recorded(calibration=made, contrast=contrast_digest())
    number = await store.propose(Made(recorded=recorded, made_by="admin"))
    there = InUse(encoder_id=encoder_id, contrast=contrast_digest())
    await store.change(Wanted(number=number, state=State.IN_FORCE, by="admin"), there)


async def test_the_new_encoder_goes_by_what_is_in_force_and_the_old_one_is_let_go(running, endpoint):
    parts, settings = running.parts, running.settings
    with_new = settings.model_copy(update={"encoder": endpoint})
    with embedding(endpoint) as embedder:
        new = embedder.encoder_id
    await _put_in_force(running, new)
    (ranking,) = await parts.router.rank(["I track parcels"])
    query = build_query()
    async with asyncio.timeout(20), reloading(running, lambda: with_new):
        signal.raise_signal(signal.SIGHUP)
        seconds = await parts.clock.slept.get()

        assert (parts.router.encoder_id, parts.router.calibration.floor) == (new, 0.7)
        assert seconds == settings.delivery.request_timeout_s
        assert parts.router.decide(query, ranking).encoder_id == HashingEncoder.encoder_id
        parts.clock.goes_on.set()
        await parts.clock.left.wait()

    assert parts.router.decide(query, ranking).encoder_id == new


async def test_who_stops_waits_for_no_old_encoder(running, endpoint):
    with_new = running.settings.model_copy(update={"encoder": endpoint})
    async with asyncio.timeout(20):
        async with reloading(running, lambda: with_new):
            signal.raise_signal(signal.SIGHUP)
            await running.parts.clock.slept.get()

        assert running.parts.clock.left.is_set()
