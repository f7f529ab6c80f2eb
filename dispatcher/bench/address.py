"""Benchmarks talk to this machine only."""

from urllib.parse import urlsplit

from dispatcher.errors import ConfigurationError

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
PORTS = {"http": 80, "amqp": 5672, "postgresql": 5432}


def loopback_address(url: str, scheme: str) -> tuple[str, int]:
    """Host and port of a URL; raises ConfigurationError for another scheme or another machine."""
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] != scheme or parts.hostname not in LOOPBACK:
        raise ConfigurationError(f"a benchmark needs {scheme}://… on this machine's loopback address")
    return parts.hostname, parts.port or PORTS[scheme]
