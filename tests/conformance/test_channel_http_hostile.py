"""Agents whose replies are slow, endless, cut or no HTTP: each call ends, and its outcome is told."""

import asyncio
import gzip

import pytest

from dispatcher.channel.http_call import CallRules, CallTimes
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from tests.conformance.channel_world import DEADLINE_S, ORDER, task
from tests.conformance.http_world import RawServer, channel_to, sending, taking

QUICK = taking(connect_s=2.0, read_s=0.4, total_s=0.8)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


async def outcome_of(script, call=QUICK):
    """The result written on behalf of an agent that answers with a script, and its connections."""
    server = RawServer(script)
    async with server.serving() as endpoint, channel_to(endpoint, call=call) as world:
        async with asyncio.timeout(DEADLINE_S):
            await world.channel.send(ORDER, task("hello"))
            frame = await world.result()
    return frame.error_code, frame.can_retry, server.connections


async def test_a_reply_that_drips_is_cut_by_the_total_time():
    script = sending(HEAD + b"Content-Length: 1000\r\n\r\n", *[b"x"] * 500, pause_s=0.05)

    assert await outcome_of(script) == ("http_total_timeout", False, 1)


async def test_headers_that_drip_are_cut_by_the_total_time():
    script = sending(HEAD, *[b"X-More: 1\r\n"] * 100, pause_s=0.05)

    assert await outcome_of(script) == ("http_total_timeout", False, 1)


async def test_a_silent_agent_is_given_up_after_the_read_time():
    call = taking(read_s=0.2, total_s=DEADLINE_S)

    assert await outcome_of(sending(b"", pause_s=2), call) == ("http_read_timeout", True, 1)


async def test_a_capability_may_have_times_of_its_own():
    own = {"order.query": CallTimes(read_s=0.2, total_s=DEADLINE_S)}
    slow, call = sending(b"", pause_s=2), CallRules(times=CallTimes(read_s=DEADLINE_S), times_of=own)

    assert await outcome_of(slow, call) == ("http_read_timeout", True, 1)


async def test_the_time_of_the_attempt_ends_the_call_and_leaves_the_rest_to_the_rules_of_attempts():
    async with RawServer(sending(b"", pause_s=2)).serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("hello", budget_ms=200))

        result = await world.result()
    assert (result.error_code, result.can_retry) == ("timeout", True)


async def test_an_endless_body_is_cut_at_the_largest_size():
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    script = sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 10_000)

    assert await outcome_of(script, CallRules()) == ("http_too_large", False, 1)


async def test_a_body_that_announces_too_much_is_cut_at_the_largest_size():
    body = b"x" * (MAX_FRAME_BYTES + 1)
    script = sending(HEAD + b"Content-Length: %d\r\n\r\n" % len(body), body)

    assert await outcome_of(script, CallRules()) == ("http_too_large", False, 1)


async def test_a_compressed_body_is_not_unpacked():
    bomb = gzip.compress(b"x" * 50_000_000)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)

    assert await outcome_of(sending(head, bomb)) == ("http_unreadable", True, 1)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 20",
        b"no HTTP at all\r\n\r\n",
        HEAD + b"Content-Length: 1000\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n{",
        HEAD + b"X-Long: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
)
async def test_a_reply_that_is_cut_or_no_http_says_that_the_agent_may_have_run(reply):
    assert await outcome_of(sending(reply)) == ("http_cut", True, 1)


async def test_a_reply_that_is_no_result_is_unreadable():
    script = sending(HEAD + b"Content-Length: 2\r\n\r\n{}")

    assert await outcome_of(script) == ("http_unreadable", True, 1)
