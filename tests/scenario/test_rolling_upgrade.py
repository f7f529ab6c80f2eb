"""Gateway and agent of an earlier commit beside those of this one, on one broker and one database."""

import asyncio
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dispatcher.clock import SystemClock
from tests.scenario.program import ROOT, Program, run

EARLIER = "88c43744c93405eb3d325a496d5d0452f7ab4827"
"""The newest commit whose schema is that of migration 0001 alone, and that knows no signal frames."""
BODY = {"message": "请给这份合同盖章"}
LONG = {"message": "请把这本书装订好"}
LINKED = {"message": "请给这份合同盖章，然后归档到档案柜"}
"""Of its two parts the second waits for a number that comes with the result of the first."""
POSTS = 16
START_S = 60.0
"""In which all programs are there, started at once on a busy machine."""
CLERK = ROOT / "tests" / "scenario" / "clerk.py"
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.xdist_group("rolling upgrade"),  # started once, not once per process
]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The earlier commit's files, in a work tree of their own."""
    git = ("git", "-C", str(ROOT))
    if not shutil.which("git") or run(*git, "cat-file", "-e", f"{EARLIER}^{{commit}}").returncode:
        pytest.skip(f"no commit {EARLIER[:7]} here: not a clone with its whole history")
    folder = tmp_path_factory.mktemp("work") / "earlier"
    added = run(*git, "worktree", "add", "--detach", str(folder), EARLIER)
    assert added.returncode == 0, added.stderr
    try:
        yield folder
    finally:
        run(*git, "worktree", "remove", "--force", str(folder))


@dataclass(frozen=True)
class Site:
    """One broker, one database, and how to start programs of one version or the other there."""

    amqp_url: str
    postgres_url: str
    prefix: str
    folder: Path

    def upgrade(self, version: Path) -> None:
        """Bring the schema to what a version needs."""
        command = (sys.executable, "-m", "dispatcher", "upgrade")
        done = run(*command, folder=version, variables=self._variables(version))
        assert done.returncode == 0, done.stderr

    def gateway(self, version: Path) -> Program:
        """A gateway on a port of its own."""
        options = ("run", "--development", "--port", "0")
        lease = {} if version != ROOT else {"DISPATCHER_DELIVERY__LEASE_S": "2"}
        return self._program(version, "-m", "dispatcher", *options, **lease)

    def clerk(self, version: Path, name: str) -> Program:
        """An agent; two of one name take turns at one inbox."""
        options = ("--broker", self.amqp_url, "--prefix", self.prefix, "--instance", "one")
        return self._program(
            version, str(CLERK), name, *options, "--inbox", f"sqlite:{self.folder / name}.db"
        )

    def _program(self, version: Path, *arguments: str, **more: str) -> Program:
        variables = {**self._variables(version), **more}
        return Program(sys.executable, *arguments, folder=version, variables=variables)

    def _variables(self, version: Path) -> dict[str, str]:
        return {
            "PYTHONPATH": str(version),
            "DISPATCHER_STORE__URL": self.postgres_url,
            "DISPATCHER_BROKER__URL": self.amqp_url,
            "DISPATCHER_BROKER__PREFIX": self.prefix,
            "DISPATCHER_DELIVERY__ATTEMPT_TIMEOUT_S": "4",
        }


@dataclass(frozen=True)
class Fleet:
    """Both versions at work."""

    site: Site
    old_gateway: Program
    old_clerk: Program
    old_url: str
    new_url: str
    client: httpx2.AsyncClient

    async def post(self, count: int, body: Mapping[str, str] = BODY) -> Sequence[str]:
        """Post to the old gateway and the new one in turn; the requests' ids."""
        headers = {"Prefer": "respond-async"}
        urls = [(self.old_url, self.new_url)[number % 2] for number in range(count)]
        posts = [self.client.post(f"{url}/v1/chat", json=body, headers=headers) for url in urls]
        return [reply.json()["request_id"] for reply in await asyncio.gather(*posts)]

    async def answered_by(self, request_ids: Sequence[str], *urls: str) -> set[str]:
        """Ask the gateways at `urls` in turn until every request is completed; the agents that did it."""
        asked = [self.ended(urls[n % len(urls)], request_id) for n, request_id in enumerate(request_ids)]
        documents = await asyncio.gather(*asked)
        assert [document["status"] for document in documents] == ["completed"] * len(documents)
        return {part["agent_id"] for document in documents for part in document["parts"]}

    async def texts(self, request_ids: Sequence[str]) -> Sequence[Sequence[str]]:
        """What the parts of each request, once it has ended, say."""
        documents = await asyncio.gather(*(self.ended(self.new_url, one) for one in request_ids))
        return [[part["result"]["text"] for part in document["parts"]] for document in documents]

    async def ended(self, url: str, request_id: str) -> dict[str, Any]:
        """The request as the gateway at `url` tells it, once it has ended."""
        async with asyncio.timeout(25):
            while True:
                document: dict[str, Any] = (await self.client.get(f"{url}/v1/requests/{request_id}")).json()
                if document.get("status") != "open":
                    return document
                await SystemClock().sleep(0.05)


@dataclass(frozen=True)
class Programs:
    """An agent and a gateway of either version, at work."""

    old_clerk: Program
    new_clerk: Program
    old_gateway: Program
    new_gateway: Program


@contextmanager
def _programs(site: Site, earlier: Path) -> Iterator[Programs]:
    """The earlier version has been running; under it an agent of the new one joins, then its gateway."""
    with ExitStack() as stack:
        clerks = ((earlier, "before"), (ROOT, "after"))
        old_clerk, new_clerk = (stack.enter_context(site.clerk(*each)) for each in clerks)
        site.upgrade(earlier)
        old_gateway = stack.enter_context(site.gateway(earlier))
        for clerk in (old_clerk, new_clerk):
            clerk.wait_for("registration.granted", START_S)
        site.upgrade(ROOT)
        new_gateway = stack.enter_context(site.gateway(ROOT))
        yield Programs(old_clerk, new_clerk, old_gateway, new_gateway)


@asynccontextmanager
async def _fleet(site: Site, programs: Programs) -> AsyncIterator[Fleet]:
    old_gateway, new_gateway = programs.old_gateway, programs.new_gateway
    old_url, new_url = (
        gateway.wait_for(r"listening on (http://\S+)", START_S)[1] for gateway in (old_gateway, new_gateway)
    )
    async with httpx2.AsyncClient(timeout=30) as client:
        yield Fleet(site, old_gateway, programs.old_clerk, old_url, new_url, client)
    told = (old_gateway, programs.old_clerk, new_gateway, programs.new_clerk)
    assert "Traceback" not in "".join(program.text for program in told)


@pytest.fixture(scope="module")
def shared_site(module_postgres_url: str, amqp_url: str, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(amqp_url, module_postgres_url, _prefix(), tmp_path_factory.mktemp("inboxes"))


@pytest.fixture(scope="module")
def shared_programs(shared_site: Site, earlier: Path) -> Iterator[Programs]:
    with _programs(shared_site, earlier) as programs:
        yield programs


@pytest.fixture
async def fleet(shared_site: Site, shared_programs: Programs) -> AsyncIterator[Fleet]:
    """For tests that leave all programs running."""
    async with _fleet(shared_site, shared_programs) as fleet:
        yield fleet


@pytest.fixture
async def own_fleet(postgres_url: str, amqp_url: str, tmp_path: Path, earlier: Path) -> AsyncIterator[Fleet]:
    """For a test that ends some of them."""
    site = Site(amqp_url, postgres_url, _prefix(), tmp_path)
    with _programs(site, earlier) as programs:
        async with _fleet(site, programs) as fleet:
            yield fleet


def _prefix() -> str:
    return f"rolling-{secrets.token_hex(4)}"


async def test_both_versions_serve_beside_each_other_and_the_earlier_one_may_go(own_fleet: Fleet) -> None:
    fleet = own_fleet
    crosswise = (fleet.new_url, fleet.old_url)
    assert await fleet.answered_by(await fleet.post(POSTS), *crosswise) == {"before", "after"}

    posted = await fleet.post(POSTS)
    stopped = [asyncio.to_thread(program.stop) for program in (fleet.old_clerk, fleet.old_gateway)]
    assert await asyncio.gather(*stopped) == [0, 0]

    assert await fleet.answered_by(posted, fleet.new_url) <= {"before", "after"}
    with fleet.site.clerk(ROOT, "before") as successor:
        successor.wait_for("registration.granted", START_S)
        reply = await fleet.client.post(f"{fleet.new_url}/v1/chat", json=BODY)
    assert reply.json()["status"] == "completed"


async def test_a_second_part_follows_the_first_whichever_version_takes_its_result(fleet: Fleet) -> None:
    """Both gateways take results of requests that the other one accepted, and remembers."""
    for _ in range(3):
        posted = await fleet.post(POSTS, LINKED)

        told = await fleet.texts(posted)

        assert told == [["已盖章。", f"no-{request_id}"] for request_id in posted]


async def test_long_tasks_outlive_a_lease_beside_the_earlier_version(fleet: Fleet) -> None:
    posted = await fleet.post(POSTS, LONG)

    assert await fleet.answered_by(posted, fleet.new_url) == {"before", "after"}
    assert "result.unreadable" not in fleet.old_gateway.text
