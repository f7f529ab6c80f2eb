import asyncio
from dataclasses import replace

import pytest

from dispatcher.channel.channel import Inbound
from dispatcher.channel.in_process import InProcessChannel, InProcessRules
from dispatcher.channel.result_intake import ResultRules
from dispatcher.clock import SystemClock
from dispatcher.errors import OutcomeUnknownError
from dispatcher.protocol.link import Settlement


async def never(_: bytes) -> bytes:
    await asyncio.Event().wait()
    return b""


async def take(_: bytes) -> Settlement:
    return Settlement.ACK


async def refuse(_: bytes) -> Settlement:
    return Settlement.DEAD


def inbound(on_result=take, on_registry=never) -> Inbound:
    return Inbound(
        on_result=on_result,
        on_registry=on_registry,
        on_heartbeat=lambda _: None,
        on_wake=lambda _: None,
        on_registry_change=lambda: None,
    )


async def test_nothing_is_taken_while_the_channel_is_closed():
    link = InProcessChannel().link()

    await link.beat(b"alive")
    with pytest.raises(OutcomeUnknownError):
        await link.call(b"register")
    with pytest.raises(OutcomeUnknownError):
        await link.publish_result(b"result")


async def test_a_registry_call_without_an_answer_ends_in_time():
    channel = InProcessChannel(InProcessRules(reply_timeout_s=0))

    async with channel.open(inbound()):
        with pytest.raises(OutcomeUnknownError):
            await channel.link().call(b"register")


async def test_of_dead_letters_that_nobody_takes_only_the_latest_are_kept():
    channel, dead = InProcessChannel(InProcessRules(dead_letters=2, dead_pause_s=0)), list[bytes]()
    kept = asyncio.Event()

    async def take(letter):
        if not kept.is_set():
            return Settlement.REQUEUE
        dead.append(letter.body)
        return Settlement.ACK

    async with channel.open(replace(inbound(on_result=refuse), on_dead=take)):
        for number in range(5):
            await channel.link().publish_result(b"%d" % number)
        kept.set()
        async with asyncio.timeout(5):
            while b"4" not in dead:
                await SystemClock().sleep(0)

    assert dead[-2:] == [b"3", b"4"]
    assert not {b"1", b"2"} & set(dead)


async def test_closing_waits_for_results_in_hand():
    channel, reached, go_on = InProcessChannel(), asyncio.Event(), asyncio.Event()

    async def slow(_: bytes) -> Settlement:
        reached.set()
        await go_on.wait()
        return Settlement.ACK

    async with asyncio.TaskGroup() as group:
        async with channel.open(inbound(on_result=slow)):
            publishing = group.create_task(channel.link().publish_result(b"result"))
            await reached.wait()
            asyncio.get_running_loop().call_soon(go_on.set)

        assert go_on.is_set()
        await publishing


async def test_a_result_that_is_not_taken_before_closing_stays_with_the_agent():
    channel = InProcessChannel(InProcessRules(results=ResultRules(requeue_pause_s=0)))
    offered = asyncio.Event()

    async def not_now(_: bytes) -> Settlement:
        offered.set()
        return Settlement.REQUEUE

    async def publish_in_vain() -> None:
        with pytest.raises(OutcomeUnknownError):
            await channel.link().publish_result(b"result")

    async with asyncio.TaskGroup() as group, channel.open(inbound(on_result=not_now)):
        group.create_task(publish_in_vain())
        await offered.wait()
