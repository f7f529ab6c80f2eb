"""What every channel must do, as tests that each adapter's test class inherits."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest

from dispatcher.channel.channel import RESULTS, Channel, DeadReason
from dispatcher.clock import SystemClock
from dispatcher.errors import DeliveryError, RefusedError, TooLargeError, UnroutableError
from dispatcher.identifiers import AgentId, RequestId
from dispatcher.protocol.frames import CancelFrame, TaskFrame
from dispatcher.protocol.link import Delivery, Link, Settlement
from dispatcher.protocol.topology import DELIVERY_LIMIT, MAX_FRAME_BYTES
from tests.conformance.channel_world import (
    DEADLINE_S,
    ORDER,
    RESULT_TRIES,
    World,
    consuming,
    following,
    frame_text,
    next_dead,
    task,
    text_of,
)


class ChannelBehaviour(ABC):
    """Inherited by one test class for each channel."""

    @abstractmethod
    def make(self, *, replicas: int = 1, max_length: int | None = None) -> AbstractAsyncContextManager[World]:
        """A running world of its own; queues hold at most `max_length` waiting tasks."""

    async def test_a_task_is_delivered_once_while_all_is_well(self):
        async with self.make() as world, consuming(world.link) as deliveries:
            await world.channel.prepare(ORDER)

            for text in ("first", "second"):
                await world.channel.send(ORDER, task(text))
            got = [await following(deliveries), await following(deliveries)]
            for delivery in got:
                await delivery.settle(Settlement.ACK)

            assert [text_of(delivery) for delivery in got] == ["first", "second"]

    async def test_the_delivered_frame_is_the_one_that_was_sent(self):
        async with self.make() as world, consuming(world.link) as deliveries:
            await world.channel.prepare(ORDER)
            sent = task("上周买的手机")

            await world.channel.send(ORDER, sent)

            assert TaskFrame.model_validate_json((await following(deliveries)).body) == sent

    async def test_tasks_wait_for_a_consumer_in_their_order(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            for text in ("first", "second", "third"):
                await world.channel.send(ORDER, task(text))

            async with consuming(world.link) as deliveries:
                got = [text_of(await following(deliveries)) for _ in range(3)]

            assert got == ["first", "second", "third"]

    async def test_an_unsettled_task_is_delivered_again_after_its_consumer_left(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            await world.channel.send(ORDER, task("kept"))
            await world.channel.send(ORDER, task("done"))
            async with consuming(world.link) as deliveries:
                await following(deliveries)
                await (await following(deliveries)).settle(Settlement.ACK)

            async with consuming(world.link) as deliveries:
                again = await following(deliveries)
                await again.settle(Settlement.ACK)
                await world.channel.send(ORDER, task("last"))
                last = await following(deliveries)

            assert [text_of(again), text_of(last)] == ["kept", "last"]

    async def test_settling_twice_or_too_late_does_nothing(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            await world.channel.send(ORDER, task("first"))
            async with consuming(world.link) as deliveries:
                first = await following(deliveries)
                await first.settle(Settlement.REQUEUE)
                await first.settle(Settlement.DEAD)
                second = await following(deliveries)
            await second.settle(Settlement.ACK)

            async with consuming(world.link) as deliveries:
                third = await following(deliveries)

            assert text_of(third) == "first"

    async def test_a_task_that_waited_longer_than_its_budget_is_dead_and_never_delivered(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            await world.channel.send(ORDER, task("late", budget_ms=1))
            await world.channel.send(ORDER, task("next"))

            dead = await next_dead(world)
            async with consuming(world.link) as deliveries:
                got = text_of(await following(deliveries))

            assert (dead.source, dead.reason) == (ORDER, DeadReason.EXPIRED)
            assert (frame_text(dead.body), got) == ("late", "next")

    async def test_a_backlog_is_not_delivered_to_an_agent_that_comes_back_too_late(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            for number in range(5):
                await world.channel.send(ORDER, task(str(number), budget_ms=1))

            dead = [frame_text((await next_dead(world)).body) for _ in range(5)]
            async with consuming(world.link) as deliveries:
                await world.channel.send(ORDER, task("fresh"))
                got = text_of(await following(deliveries))

            assert (dead, got) == ([str(number) for number in range(5)], "fresh")

    async def test_a_task_given_back_after_its_budget_is_not_delivered_again(self):
        async with self.make() as world, consuming(world.link, prefetch=1) as deliveries:
            await world.channel.prepare(ORDER)
            await world.channel.send(ORDER, task("held", budget_ms=1_000))
            held = await following(deliveries)
            await world.channel.send(ORDER, task("later", budget_ms=1_000))
            await world.channel.send(ORDER, task("next"))
            assert frame_text((await next_dead(world)).body) == "later"

            await held.settle(Settlement.REQUEUE)
            got = text_of(await following(deliveries))

            assert (text_of(held), got) == ("held", "next")

    async def test_a_task_without_budget_is_not_sent(self):
        async with self.make() as world, consuming(world.link) as deliveries:
            await world.channel.prepare(ORDER)

            with pytest.raises(RefusedError) as refused:
                await world.channel.send(ORDER, task("nothing left", budget_ms=0))
            await world.channel.send(ORDER, task("next"))

            assert refused.value.error_code == "expired"
            assert text_of(await following(deliveries)) == "next"

    async def test_no_more_than_prefetch_tasks_are_unsettled(self):
        async with self.make() as world, consuming(world.link, prefetch=1) as busy:
            await world.channel.prepare(ORDER)
            for text in ("first", "second"):
                await world.channel.send(ORDER, task(text))
            first = await following(busy)

            async with consuming(world.link, prefetch=1) as idle:
                second = await following(idle)

            assert {text_of(first), text_of(second)} == {"first", "second"}

    async def test_sending_to_an_unknown_agent_is_unroutable(self):
        async with self.make() as world:
            with pytest.raises(UnroutableError):
                await world.channel.send(AgentId("nobody"), task("lost"))

    async def test_a_dead_task_goes_to_the_dead_letters_and_the_queue_moves_on(self):
        async with self.make() as world, consuming(world.link, prefetch=1) as deliveries:
            await world.channel.prepare(ORDER)
            await world.channel.send(ORDER, task("poison"))
            await world.channel.send(ORDER, task("good"))

            await (await following(deliveries)).settle(Settlement.DEAD)
            good = await following(deliveries)
            dead = await next_dead(world)

            assert text_of(good) == "good"
            assert (dead.source, dead.reason) == (ORDER, DeadReason.REJECTED)
            assert frame_text(dead.body) == "poison"

    async def test_a_task_given_back_too_often_ends_in_the_dead_letters(self):
        async with self.make() as world, consuming(world.link) as deliveries:
            await world.channel.prepare(ORDER)
            await world.channel.send(ORDER, task("poison"))

            for _ in range(DELIVERY_LIMIT + 1):
                await (await following(deliveries)).settle(Settlement.REQUEUE)
            dead = await next_dead(world)

            assert (dead.source, dead.reason) == (ORDER, DeadReason.DELIVERY_LIMIT)
            assert frame_text(dead.body) == "poison"

    async def test_a_full_queue_refuses_and_takes_again_when_there_is_room(self):
        async with self.make(max_length=2) as world:
            await world.channel.prepare(ORDER)

            with pytest.raises(RefusedError):
                await _send_many(world.channel, 20)

            async with consuming(world.link) as deliveries:
                await (await following(deliveries)).settle(Settlement.ACK)

    async def test_a_frame_that_is_too_large_is_refused_and_harms_no_other(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            too_large = task("x" * MAX_FRAME_BYTES)

            outcomes = await asyncio.gather(
                *(world.channel.send(ORDER, task(str(number))) for number in range(10)),
                world.channel.send(ORDER, too_large),
                *(world.channel.send(ORDER, task(str(number))) for number in range(10)),
                return_exceptions=True,
            )

            assert [type(outcome) for outcome in outcomes if outcome] == [TooLargeError]
            with pytest.raises(TooLargeError):
                await world.link.publish_result(b"x" * (MAX_FRAME_BYTES + 1))

    async def test_a_result_is_offered_again_until_it_is_taken(self):
        async with self.make() as world:
            world.received.answers.extend([Settlement.REQUEUE, Settlement.REQUEUE])

            await world.link.publish_result(b"result")

            await world.received.until(lambda: len(world.received.results) == 3)
            assert set(world.received.results) == {b"result"}

    async def test_a_result_nobody_can_use_goes_to_the_dead_letters(self):
        async with self.make() as world:
            world.received.answers.append(Settlement.DEAD)

            await world.link.publish_result(b"unreadable")
            await world.link.publish_result(b"good")

            await world.received.until(lambda: b"good" in world.received.results)
            dead = await next_dead(world)
            assert (dead.source, dead.reason, dead.body) == (RESULTS, DeadReason.REJECTED, b"unreadable")
            assert sorted(world.received.results) == [b"good", b"unreadable"]

    async def test_a_result_whose_handling_failed_is_offered_again(self):
        async with self.make() as world:
            world.received.answers.append(ValueError("a fault of ours"))

            await world.link.publish_result(b"result")

            await world.received.until(lambda: world.received.results == [b"result"] * 2)

    async def test_a_result_whose_handling_always_fails_goes_to_the_dead_letters(self):
        async with self.make() as world:
            world.received.answers.extend([ValueError("a fault of ours")] * RESULT_TRIES)

            await world.link.publish_result(b"poison")

            assert (await next_dead(world)).body == b"poison"
            assert world.received.results == [b"poison"] * RESULT_TRIES

    async def test_a_registry_call_gets_its_own_reply(self):
        async with self.make(replicas=2) as world:
            replies = await asyncio.gather(*(world.link.call(b"%d" % number) for number in range(20)))

            assert replies == [b"reply to %d" % number for number in range(20)]

    async def test_a_heartbeat_reaches_every_replica(self):
        async with self.make(replicas=2) as world:
            await world.link.beat(b"alive")

            for replica in world.replicas:
                await replica.received.until_heartbeats([b"alive"])

    async def test_a_wake_up_reaches_the_named_replica(self):
        async with self.make(replicas=2) as world:
            named, others = world.replicas[-1], world.replicas[:-1]

            await world.channel.wake(named.replica_id, RequestId("request"))

            await named.received.until(lambda: named.received.wakes == [RequestId("request")])
            assert not any(other.received.wakes for other in others)

    async def test_a_registry_change_is_announced_to_the_other_replicas_only(self):
        async with self.make(replicas=2) as world:
            sender, others = world.replicas[0], world.replicas[1:]

            await sender.channel.announce_registry_change()
            await world.link.beat(b"after it")

            await sender.received.until(lambda: bool(sender.received.heartbeats))
            assert sender.received.registry_changes == 0
            for other in others:
                await other.received.until_registry_changes(1)

    async def test_it_closes_cleanly_under_load(self):
        async with asyncio.timeout(DEADLINE_S), self.make() as world:
            await world.channel.prepare(ORDER)
            async with consuming(world.link) as deliveries, asyncio.TaskGroup() as load:
                answering = load.create_task(_answer(world.link, deliveries))
                sending = load.create_task(_send_for_ever(world.channel))
                await world.received.until(lambda: len(world.received.results) > 20)
                sending.cancel()
                answering.cancel()
        assert not world.channel.is_ready()

    async def test_a_cancellation_reaches_every_instance_that_listens(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            frame = CancelFrame(request_id="r1", task_id="t1", agent_id=ORDER, reason="caller")
            async with world.link.controls(ORDER) as one, world.link.controls(ORDER) as another:
                await world.channel.cancel(ORDER, frame)

                async with asyncio.timeout(DEADLINE_S):
                    heard = [await anext(one), await anext(another)]

            assert [CancelFrame.model_validate_json(body) for body in heard] == [frame, frame]

    async def test_a_cancellation_for_another_agent_or_for_nobody_disturbs_no_one(self):
        async with self.make() as world:
            await world.channel.prepare(ORDER)
            frame = CancelFrame(request_id="r1", task_id="t1", agent_id="other", reason="caller")
            mine = frame.model_copy(update={"agent_id": ORDER, "task_id": "t2"})
            await world.channel.cancel(ORDER, mine)
            async with world.link.controls(ORDER) as controls:
                await world.channel.cancel(AgentId("other"), frame)
                await world.channel.cancel(ORDER, mine)

                async with asyncio.timeout(DEADLINE_S):
                    heard = CancelFrame.model_validate_json(await anext(controls))

            assert heard == mine

    async def test_signals_arrive_in_their_order(self):
        async with self.make() as world:
            sent = [b"started", b"progress", b"partial"]

            for frame in sent:
                await world.link.publish_signal(frame)
            await world.received.until(lambda: len(world.received.results) == 3)

            assert world.received.results == sent

    async def test_a_delivery_says_since_when_its_budget_runs(self):
        async with self.make() as world, consuming(world.link) as deliveries:
            await world.channel.prepare(ORDER)
            before = SystemClock().monotonic()

            await world.channel.send(ORDER, task("first"))
            delivery = await following(deliveries)

            assert before <= delivery.since <= SystemClock().monotonic()


async def _send_many(channel: Channel, count: int) -> None:
    for number in range(count):
        await channel.send(ORDER, task(str(number)))


async def _send_for_ever(channel: Channel) -> None:
    while True:
        await asyncio.gather(*(channel.send(ORDER, task("load")) for _ in range(5)))


async def _answer(link: Link, deliveries: AsyncIterator[Delivery]) -> None:
    async for delivery in deliveries:
        try:
            await link.publish_result(delivery.body)
        except DeliveryError:
            await delivery.settle(Settlement.REQUEUE)
        else:
            await delivery.settle(Settlement.ACK)
