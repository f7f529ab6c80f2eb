"""Which endpoints may be called, judged by their text and by the address they lead to."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.channel.http_policy import LOOPBACK, AddressPolicy

PUBLIC = ("93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101")
FORBIDDEN = {
    "loopback": ("127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"),
    "private": ("10.0.0.1", "172.16.0.1", "192.168.1.1", "fd00::1", "::ffff:10.0.0.1"),
    "link-local": ("169.254.1.1", "fe80::1", "fe80::1%eth0"),
    "multicast": ("224.0.0.1", "239.1.1.1", "224.0.1.1", "ff02::1", "ff0e::1"),
    "unspecified": ("0.0.0.0", "::"),  # noqa: S104
    "metadata": ("169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"),
    "reserved": ("100.64.0.1", "fec0::1", "::7f00:1"),
}
UNUSUAL = ("2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5", "0x")
NO_ENDPOINT = (
    "ftp://agent.example/",
    "file:///etc/passwd",
    "//agent.example/",
    "http://",
    "http://./",
    "http://user@agent.example/",
    "http://:secret@agent.example/",
    "http://agent.example/#part",
    "http://agent.example\\@127.0.0.1/",
    "http://１２７.0.0.1/",
    "http://agent.example:0/",
    "http://agent.example:99999/",
    "http://[::1/",
)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_dialled(address):
    assert AddressPolicy().address_flaw(address) is None


@pytest.mark.parametrize(
    ("kind", "address"), [(kind, address) for kind, found in FORBIDDEN.items() for address in found]
)
def test_no_other_address_may_be_dialled_and_the_reason_is_said(kind, address):
    assert kind in (AddressPolicy().address_flaw(address) or "")


@pytest.mark.parametrize("address", ["2002:7f00:1::", "2001:0:1::1", "2001:db8::1", "240.0.0.1", "nonsense"])
def test_addresses_that_wrap_others_or_mean_nothing_may_not_be_dialled(address):
    assert AddressPolicy().address_flaw(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_a_longer_one_is_judged_as_itself(inner: IPv4Address):
    policy = AddressPolicy()

    for outer in (f"::ffff:{inner}", str(IPv6Address(int(IPv6Address("64:ff9b::")) | int(inner)))):
        assert policy.address_flaw(outer) == policy.address_flaw(str(inner))


def test_allowed_networks_may_be_dialled_and_their_neighbours_not():
    policy = AddressPolicy(allowed=(ip_network("10.20.0.0/16"), ip_network("fd00::/64")))

    assert [policy.address_flaw(address) for address in ("10.20.3.4", "::ffff:10.20.3.4", "fd00::5")] == [
        None
    ] * 3
    assert all(policy.address_flaw(address) for address in ("10.21.0.1", "fd00:0:0:1::1", "127.0.0.1"))


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "LOCALHOST.", "api.localhost"])
def test_this_host_may_be_called_only_where_loopback_is_allowed(host):
    endpoint = f"http://{host}:9000/tasks"

    assert "loopback" in (AddressPolicy().endpoint_flaw(endpoint) or "")
    assert AddressPolicy(allowed=LOOPBACK).endpoint_flaw(endpoint) is None


@pytest.mark.parametrize("host", UNUSUAL)
def test_an_address_in_an_unusual_spelling_is_no_endpoint_whatever_is_allowed(host):
    policy = AddressPolicy(allowed=(ip_network("0.0.0.0/0"),))

    for spelled in (host, f"{host}."):
        assert "unusual" in (policy.endpoint_flaw(f"http://{spelled}/") or "")


@pytest.mark.parametrize("endpoint", NO_ENDPOINT)
def test_what_is_no_plain_http_address_is_no_endpoint(endpoint):
    assert AddressPolicy().endpoint_flaw(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://agent.example/tasks",
        "http://agent.example:8443/a?b=c",
        "https://1.1.1.1/",
        "http://[2606:4700::1]/",
    ],
)
def test_a_name_or_public_address_may_be_an_endpoint(endpoint):
    assert AddressPolicy().endpoint_flaw(endpoint) is None


@given(st.text())
def test_any_text_gets_an_answer_and_is_not_repeated(text):
    flaw = AddressPolicy().endpoint_flaw(text)

    assert flaw
    assert len(text) < 20 or text not in flaw
