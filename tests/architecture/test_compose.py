"""The services of the compose file are where our documents say."""

from urllib.parse import urlsplit

import pytest
import yaml  # type: ignore[import-untyped]

from tests.architecture import tree
from tests.scenario.document import blocks

SERVICES = yaml.safe_load((tree.ROOT / "compose" / "services.yaml").read_text(encoding="utf-8"))["services"]
POSTGRES = SERVICES["postgres"]["environment"]


def address(lines: str, name: str):
    """The address that a shell line exports."""
    return urlsplit(next(line for line in lines.splitlines() if name in line).partition("=")[2])


def published(service: str) -> int:
    """The one port of a service, which is reachable from this host only."""
    (port,) = SERVICES[service]["ports"]
    host, outside, inside = port.split(":")
    assert (host, outside) == ("127.0.0.1", inside)
    return int(outside)


def is_the_database(url) -> bool:
    made = (POSTGRES["POSTGRES_USER"], POSTGRES["POSTGRES_PASSWORD"], f"/{POSTGRES['POSTGRES_DB']}")
    where = (url.hostname, url.port) == ("127.0.0.1", published("postgres"))
    return (url.username, url.password, url.path) == made and where


def is_the_broker(url) -> bool:
    """The image's own user, as the file sets no other."""
    where = (url.hostname, url.port) == ("127.0.0.1", published("rabbitmq"))
    return (url.username, url.password, url.path) == ("guest", "guest", "/") and where


@pytest.mark.parametrize("document", ["README.md", "README.zh-CN.md"])
def test_the_walk_through_uses_the_addresses_that_the_file_makes(document):
    (lines,) = blocks(document, "walkthrough addresses")

    assert is_the_database(address(lines, "DISPATCHER_STORE__URL"))
    assert is_the_broker(address(lines, "DISPATCHER_BROKER__URL"))
    assert "environment" not in SERVICES["rabbitmq"]


def test_tests_are_told_the_same_addresses():
    lines = (tree.ROOT / ".ci" / "services").read_text(encoding="utf-8")

    assert is_the_database(address(lines, "export ARD_TEST_POSTGRES"))
    assert is_the_broker(address(lines, "export ARD_TEST_RABBITMQ"))


def test_the_health_check_asks_as_the_user_that_exists():
    check = SERVICES["postgres"]["healthcheck"]["test"][-1]

    assert f"--username {POSTGRES['POSTGRES_USER']} --dbname {POSTGRES['POSTGRES_DB']}" in check
