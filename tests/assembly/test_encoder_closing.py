"""An encoder that is replaced is closed beside what serves, and nobody waits for its calls."""

import asyncio
import threading

import numpy as np
import pytest

from dispatcher.assembly.encoders import EncoderInUse, OpenedEncoder, open_encoder
from dispatcher.clock import SystemClock
from dispatcher.errors import UnavailableError
from dispatcher.registry.agent import LivenessRules
from dispatcher.registry.success import SuccessRules
from dispatcher.registry.view import LiveView
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.router import Router
from dispatcher.routing.rules import RoutingRules
from dispatcher.settings import EncoderSettings
from tests.routing.embeddings_stub import embeddings_stub

HASHING = EncoderSettings(name="hashing")


class HeldEncoder:
    """A call of it ends when it is let go."""

    encoder_id = "held"
    dimensions = 2

    def __init__(self) -> None:
        self.started = threading.Event()
        self.let_go = threading.Event()
        self.was_let_go = False

    def encode(self, texts, *, as_passages=False):
        del as_passages
        self.started.set()
        self.was_let_go = self.let_go.wait(timeout=5)
        return np.ones((len(texts), 2), dtype=np.float32)


def router_of(encoder) -> Router:
    clock = SystemClock()
    view = LiveView(rules=LivenessRules(), clock=clock, success=SuccessRules())
    return Router(encoder=encoder, directory=view, make_index=ExactIndex, rules=RoutingRules(), clock=clock)


async def nothing(router: Router) -> None:
    del router


async def test_the_event_loop_goes_on_while_an_encoder_is_closed():
    held = HeldEncoder()
    loop = asyncio.get_running_loop()

    def make(encoder) -> Router:
        if encoder.encoder_id != "held":
            loop.call_soon(held.let_go.set)  # nothing else lets the call end, which closing waits for
        return router_of(encoder)

    in_use = EncoderInUse(OpenedEncoder(held, HASHING), make)
    async with asyncio.TaskGroup() as group:
        call = group.create_task(in_use.router.encoder.encode(["text"]))
        assert await asyncio.to_thread(held.started.wait, 20)
        call.cancel()

    await in_use.change(HASHING, nothing)
    in_use.close()

    assert held.was_let_go


async def test_closing_ends_a_call_of_an_endpoint_instead_of_waiting_for_it():
    with embeddings_stub() as stub:
        chosen = EncoderSettings(name="openai", model="m", url=stub.url, dimensions=512, timeout_s=1000)
        opened = await open_encoder(chosen)
        stub.mood = "slow"
        async with asyncio.TaskGroup() as group:
            call = group.create_task(refused(opened))
            assert await asyncio.to_thread(stub.arrived.wait, 20)
            await asyncio.to_thread(opened.close)

        assert not stub.gave_up
        assert call.result() == "the embeddings endpoint is not asked any more"


async def refused(opened: OpenedEncoder) -> str:
    with pytest.raises(UnavailableError) as caught:
        await opened.encoder.encode(["text"])
    return caught.value.message
