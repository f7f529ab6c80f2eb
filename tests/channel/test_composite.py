"""Tasks go the way their agent declared; all else is the primary channel's."""

from contextlib import asynccontextmanager

import pytest

from dispatcher.channel.composite import CompositeChannel
from dispatcher.identifiers import AgentId, ReplicaId, RequestId

INBOUND = TASK = object()
DECLARED = {AgentId("order"): "rabbitmq", AgentId("faq"): "http"}


class Noting:
    """A channel that writes down what it is asked for."""

    def __init__(self, name, notes):
        self._name = name
        self._notes = notes

    @asynccontextmanager
    async def open(self, inbound):
        assert inbound is INBOUND
        self._note("open")
        yield
        self._note("close")

    async def prepare(self, agent_id):
        self._note("prepare", agent_id)

    async def send(self, agent_id, task, *, bound=False):
        assert task is TASK
        self._note("send", agent_id, bound)

    async def cancel(self, agent_id, frame):
        self._note("cancel", agent_id)

    async def wake(self, replica_id, request_id):
        self._note("wake", replica_id, request_id)

    async def announce_registry_change(self):
        self._note("announce")

    def problem(self) -> str | None:
        return None

    def is_ready(self):
        return self._name == "primary"

    def _note(self, *facts):
        self._notes.append((self._name, *facts))


@pytest.fixture
def notes():
    return []


@pytest.fixture
def composite(notes):
    return CompositeChannel(Noting("primary", notes), {"http": Noting("http", notes)}, DECLARED.get)


@pytest.mark.parametrize(
    ("agent_id", "way"), [("order", "primary"), ("faq", "http"), ("unknown to us", "primary")]
)
async def test_a_task_is_sent_the_way_its_agent_declared(composite, notes, agent_id, way):
    for bound in (False, True):
        await composite.send(AgentId(agent_id), TASK, bound=bound)

    assert notes == [(way, "send", agent_id, bound) for bound in (False, True)]


async def test_the_channel_that_an_agent_declares_is_prepared_and_no_other(composite, notes):
    await composite.prepare(AgentId("faq"))
    await composite.prepare_as(AgentId("faq"), "rabbitmq")
    await composite.prepare_as(AgentId("order"), "http")

    assert notes == [
        ("http", "prepare", "faq"),
        ("primary", "prepare", "faq"),
        ("http", "prepare", "order"),
    ]


async def test_the_primary_is_opened_first_and_closed_last(composite, notes):
    async with composite.open(INBOUND):
        notes.append("inside")

    assert notes == [
        ("primary", "open"),
        ("http", "open"),
        "inside",
        ("http", "close"),
        ("primary", "close"),
    ]


async def test_all_else_is_the_primarys(composite, notes):
    await composite.wake(ReplicaId("r1"), RequestId("q1"))
    await composite.announce_registry_change()

    assert composite.is_ready()
    assert notes == [("primary", "wake", "r1", "q1"), ("primary", "announce")]
