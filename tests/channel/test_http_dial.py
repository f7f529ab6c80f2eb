"""At the dial every address is judged again; for a forbidden one not even a socket is opened."""

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from dispatcher.channel.http_call import CallRules, HttpCaller
from dispatcher.channel.http_policy import AddressPolicy
from dispatcher.errors import UnroutableError
from dispatcher.protocol.frames import CancelFrame
from tests.channel.builders import TASK


class Names(AbstractResolver):
    """Every name leads to the given addresses."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if not self._addresses:
            raise OSError("no such name")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        pass


class Sockets:
    """Opens none, and remembers for which addresses one was wanted."""

    def __init__(self) -> None:
        self.wanted: list[str] = []

    def __call__(self, info) -> socket.socket:
        self.wanted.append(str(info[4][0]))
        raise OSError("no socket in this test")


async def refusal(endpoint, names, sockets):
    """The code that the call was refused with; it was not handed over."""
    handed_over: list[bool] = []
    caller = HttpCaller(CallRules(), AddressPolicy(), resolver=names, open_socket=sockets)
    async with caller.opened():
        with pytest.raises(UnroutableError) as refused:
            await caller.call(endpoint, TASK, b"{}", lambda: handed_over.append(True))
    assert not handed_over
    return refused.value.error_code


@pytest.mark.parametrize(
    "addresses",
    [
        ("127.0.0.1",),
        ("10.0.0.1",),
        ("169.254.169.254",),
        ("0.0.0.0",),  # noqa: S104
        ("::1",),
        ("::ffff:127.0.0.1",),
        ("fd00::1",),
        ("10.0.0.1", "10.0.0.2", "fe80::1"),
    ],
)
async def test_a_name_that_leads_to_a_forbidden_address_is_not_dialled(addresses):
    names, sockets = Names(*addresses), Sockets()

    await refusal("http://agent.example/tasks", names, sockets)

    assert names.asked == ["agent.example"]
    assert not sockets.wanted


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "10.0.0.1", "169.254.169.254", "0.0.0.0"],  # noqa: S104
)
async def test_an_address_in_the_endpoint_itself_is_judged_although_no_name_is_looked_up(host):
    names, sockets = Names("1.1.1.1"), Sockets()

    code = await refusal(f"http://{host}/tasks", names, sockets)

    assert code == "endpoint_refused"
    assert (names.asked, sockets.wanted) == ([], [])


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost", "１２７.0.0.1"]
)
async def test_an_unusual_spelling_of_this_host_is_not_dialled(host):
    sockets = Sockets()

    await refusal(f"http://{host}/tasks", Names("127.0.0.1"), sockets)

    assert not sockets.wanted


async def test_of_the_addresses_of_a_name_only_the_public_ones_are_dialled():
    sockets = Sockets()

    code = await refusal("http://agent.example/", Names("10.0.0.1", "1.1.1.1"), sockets)

    assert set(sockets.wanted) == {"1.1.1.1"}
    assert code == "unroutable"


async def test_a_name_that_changes_its_mind_is_judged_by_where_it_leads_now():
    names, sockets = Names("1.1.1.1"), Sockets()
    await refusal("http://agent.example/", names, sockets)
    names._addresses = ("127.0.0.1",)

    await refusal("http://other.example/", names, sockets)

    assert set(sockets.wanted) == {"1.1.1.1"}


async def test_a_name_that_nobody_knows_is_unroutable():
    assert await refusal("http://agent.example/", Names(), Sockets()) == "unroutable"


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1"])
async def test_a_cancellation_dials_no_forbidden_address_either(address):
    names, sockets = Names(address), Sockets()
    frame = CancelFrame(request_id="r1", task_id="t1", agent_id="order", reason="caller")
    caller = HttpCaller(CallRules(), AddressPolicy(), resolver=names, open_socket=sockets)

    async with caller.opened():
        with pytest.raises(UnroutableError):
            await caller.cancel("http://agent.example/tasks", frame)

    assert (names.asked, sockets.wanted) == (["agent.example"], [])
