"""Which addresses agents may be called at: asked when an agent registers and at every dial.

Addresses are judged by what they are, never by how they are spelled: a name is judged by what it
leads to at the moment of the dial, so that a name that changes its mind gains nothing.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LOOPBACK: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
"""This host's own; allowed in development mode."""
METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"))
)
"""Where clouds tell a machine its secrets; the second is in a public range."""
NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""
NUMERIC = re.compile(r"(?:^|\.)(?:\d+|0[xX][0-9a-fA-F]*)$")
"""A host that ends in a number is an IPv4 address to some readers (WHATWG URL, 3.5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """Public addresses, and those in `allowed` networks, whatever else they are."""

    allowed: tuple[Network, ...] = ()

    def endpoint_flaw(self, endpoint: str, client: str | None = None) -> str | None:
        """Why no agent can be called at this URL, as far as its text tells; None when it may be dialled.

        `client` is as for `address_flaw`. The sentence goes on after the endpoint's name and never
        quotes the endpoint.
        """
        try:
            parts = urlsplit(endpoint)
            port = parts.port
        except ValueError:
            return "is not a URL"
        return _flaw_of_form(parts, port, endpoint) or self._flaw_of_host(parts.hostname or "", client)

    def address_flaw(self, address: str, client: str | None = None) -> str | None:
        """Why this IP address may not be dialled; None when it may.

        `client` is the address of another host that registers it, None where it comes from this one
        or nobody can tell: loopback leads to ourselves, and never to that host.
        """
        try:
            found = _embedded(ip_address(address))
        except ValueError:
            return "leads to what is not an IP address"
        if found.is_loopback and client is not None:
            return f"leads to the dispatcher's own host, and the registration came from {client}"
        if any(found in network for network in self.allowed):
            return None
        kind = _kind(found)
        return None if kind is None else f"leads to a {kind} address; http.allowed_networks does not hold it"

    def _flaw_of_host(self, host: str, client: str | None) -> str | None:
        name = host.rstrip(".")
        if _is_address(name):
            return self.address_flaw(name, client)
        if NUMERIC.search(name):
            return "spells an IP address in an unusual way"
        if name == "localhost" or name.endswith(".localhost"):
            return self.address_flaw("127.0.0.1", client)
        return None


def _flaw_of_form(parts: SplitResult, port: int | None, endpoint: str) -> str | None:
    if parts.scheme not in {"http", "https"}:
        return "is neither http nor https"
    if parts.username is not None or parts.password is not None:
        return "holds a user name or password"
    if "#" in endpoint or "\\" in endpoint or not endpoint.isascii():
        return "holds a fragment, a backslash or letters beyond ASCII"
    if not (parts.hostname or "").strip(".") or port == 0:
        return "names no host or no port"
    return None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _embedded(address: Address) -> Address:
    """The IPv4 address that packets to this IPv6 address end at, else the address itself."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _kind(address: Address) -> str | None:
    """What keeps an address from being public; None for a public one."""
    kinds = {
        "metadata": address in METADATA,
        "loopback": address.is_loopback,
        "link-local": address.is_link_local,
        "multicast": address.is_multicast,
        "unspecified": address.is_unspecified,
        "private": address.is_private,
        "reserved": _is_reserved(address),
    }
    return next((kind for kind, holds in kinds.items() if holds), None)


def _is_reserved(address: Address) -> bool:
    """Addresses that wrap another one (6to4, Teredo) are among them: where they lead, nobody can say."""
    if isinstance(address, IPv6Address):
        wraps = address.sixtofour is not None or address.teredo is not None
        if wraps or address.is_site_local:
            return True
    return address.is_reserved or not address.is_global
