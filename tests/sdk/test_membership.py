"""Joining, staying and leaving."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dispatcher.backoff import BackoffRules
from dispatcher.clock import SystemClock
from dispatcher.errors import OutcomeUnknownError, RegistrationError
from dispatcher.identifiers import InstanceId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.protocol.frames import Frame, RefusedFrame
from dispatcher.sdk.load_window import LoadWindow
from dispatcher.sdk.membership import CHECK_EVERY, InstanceIdentity, Membership
from tests.sdk.stub_link import WAIT_S, StubLink, refused


class NoticedLink(StubLink):
    """Tells when a frame of a type was sent for the n-th time."""

    def __init__(self, *, heartbeat_ms: int = 1) -> None:
        super().__init__(heartbeat_ms=heartbeat_ms)
        self._changed = asyncio.Condition()
        self.refuse_heartbeats: list[RefusedFrame] = []

    async def call(self, frame: bytes) -> bytes:
        if b'"heartbeat"' in frame and self.refuse_heartbeats:
            self.script.insert(0, self.refuse_heartbeats.pop(0))
        try:
            return await super().call(frame)
        finally:
            async with self._changed:
                self._changed.notify_all()

    async def sent(self, kind: str, times: int) -> None:
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(lambda: self.called(kind) >= times)


def membership_over(link: StubLink, *, running: int = 0) -> Membership:
    identity = InstanceIdentity(
        agent_id="tester",
        name="host-1",
        instance_id=InstanceId("instance-1"),
        declaration=Declaration(
            capabilities=[CapabilityDeclaration(name="work.do", descriptions=["Works."])]
        ),
        inbox="sqlite",
        inbox_id="file-1",
        key="ard_key_secret",
    )
    return Membership(
        identity,
        link,
        SystemClock(),
        window=LoadWindow(),
        running=lambda: running,
        backoff=BackoffRules(first_s=0.0, longest_s=0.001),
    )


@asynccontextmanager
async def staying(membership: Membership) -> AsyncIterator[None]:
    await membership.join()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(membership.stay())
        yield
        task.cancel()


async def test_joining_tells_who_one_is_and_keeps_the_lease():
    link = StubLink()
    membership = membership_over(link)

    await membership.join()

    (sent,) = link.calls
    assert (sent["agent_id"], sent["instance_name"]) == ("tester", "host-1")
    assert (sent["inbox"], sent["inbox_id"]) == ("sqlite", "file-1")
    assert sent["key"] == "ard_key_secret"
    assert membership.lease is not None
    assert membership.lease.lease_id == "lease-1"


async def test_a_silent_or_unready_dispatcher_is_asked_until_it_answers():
    link = StubLink()
    link.script = [OutcomeUnknownError("no reply"), refused("unavailable"), refused("internal_error")]
    membership = membership_over(link)

    await membership.join()

    assert link.called("register") == 4


async def test_an_unreadable_reply_is_no_reply():
    link = StubLink()
    link.script = [Frame()]
    membership = membership_over(link)

    await membership.join()

    assert link.called("register") == 2


async def test_a_refusal_is_final():
    link = StubLink()
    link.script = [refused("private_inbox")]

    with pytest.raises(RegistrationError, match="refused: private_inbox") as caught:
        await membership_over(link).join()

    assert caught.value.error_code == "private_inbox"


async def test_heartbeats_carry_the_lease_and_the_load():
    link = NoticedLink()
    async with staying(membership_over(link, running=3)):
        beat = await link.heard_beat()

    assert (beat["lease_id"], beat["instance_id"], beat["running"]) == ("lease-1", "instance-1", 3)


async def test_a_lost_heartbeat_does_not_end_the_loop():
    class Deaf(NoticedLink):
        async def beat(self, frame: bytes) -> None:
            await super().beat(frame)
            if self.beats.qsize() == 1:
                raise OutcomeUnknownError("lost")

    link = Deaf()
    async with staying(membership_over(link)):
        for _ in range(3):
            await link.heard_beat()


async def test_a_slow_answer_about_the_lease_delays_no_heartbeat():
    class Slow(NoticedLink):
        asked = False

        async def call(self, frame: bytes) -> bytes:
            if b'"heartbeat"' in frame:
                self.asked = True
                await asyncio.Event().wait()
            return await super().call(frame)

    link = Slow()
    async with staying(membership_over(link)):
        while not link.asked:
            await link.heard_beat()

        for _ in range(CHECK_EVERY + 1):
            await link.heard_beat()


@pytest.mark.parametrize("code", ["unknown_agent", "lease_superseded"])
async def test_a_lost_lease_is_found_out_and_can_be_joined_again(code):
    link = NoticedLink()
    link.refuse_heartbeats = [refused(code)]
    membership = membership_over(link)
    await membership.join()

    await membership.stay()
    registered = link.called("register")
    await membership.join()

    assert registered == 1
    assert membership.lease is not None
    assert membership.lease.lease_id == "lease-2"


@pytest.mark.parametrize("code", ["unknown_agent", "lease_superseded"])
async def test_the_fence_is_open_with_a_lease_and_closed_when_that_is_lost(code):
    link = NoticedLink()
    link.refuse_heartbeats = [refused(code)]
    membership = membership_over(link)
    fence = membership.fence

    await membership.join()
    was_open = fence.is_open
    await membership.stay()
    closed = not fence.is_open
    await membership.join()

    assert (was_open, closed, fence.is_open) == (True, True, True)


async def test_the_lease_is_asked_about_early_where_a_task_waits_and_the_answer_lets_it_through():
    link = NoticedLink(heartbeat_ms=50)
    membership = membership_over(link)
    fence = membership.fence
    async with staying(membership):
        now = SystemClock().monotonic()
        fence.confirm(now - 60.0, 60.0)

        assert await fence.opens(now + WAIT_S)

    assert link.called("heartbeat") >= 1


async def test_an_unanswered_question_does_not_open_the_fence():
    link = NoticedLink()
    membership = membership_over(link)
    await membership.join()
    fence = membership.fence
    now = SystemClock().monotonic()
    fence.confirm(now - 60.0, 60.0)
    link.script = [OutcomeUnknownError("no reply"), refused("unavailable"), refused("overloaded")]
    async with asyncio.TaskGroup() as group:
        staying_on = group.create_task(membership.stay())
        opened = await fence.opens(now + WAIT_S)
        staying_on.cancel()

    assert opened
    assert link.called("heartbeat") >= 4


async def test_other_refusals_of_a_heartbeat_change_nothing():
    link = NoticedLink()
    link.refuse_heartbeats = [refused("unreadable")]
    async with staying(membership_over(link)):
        await link.sent("heartbeat", 2)

    assert link.called("register") == 1


async def test_a_lease_taken_again_and_again_means_a_rival_and_ends_the_agent():
    link = NoticedLink()
    link.refuse_heartbeats = [refused("lease_superseded"), refused("lease_superseded")]
    membership = membership_over(link)
    await membership.join()
    await membership.stay()
    await membership.join()

    with pytest.raises(RegistrationError, match="another process runs as 'host-1' of agent tester"):
        await membership.stay()


async def test_who_drains_does_not_join_again():
    link = NoticedLink()
    link.refuse_heartbeats = [refused("unknown_agent")]
    membership = membership_over(link)
    async with staying(membership):
        await membership.drain()
        for _ in range(CHECK_EVERY + 1):
            await link.heard_beat()

    assert (link.called("drain"), link.called("register"), link.called("heartbeat")) == (1, 1, 0)


async def test_leaving_is_best_effort_and_needs_a_lease():
    link = StubLink()
    membership = membership_over(link)
    await membership.leave()
    await membership.drain()
    await membership.join()
    link.script = [OutcomeUnknownError("nobody there")]

    await membership.leave()

    assert [call["type"] for call in link.calls] == ["register", "leave"]
