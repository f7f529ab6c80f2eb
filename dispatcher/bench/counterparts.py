"""What a dispatch is compared with, each in processes of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

from dispatcher.bench.chain import BARE, DELETE_S, Services
from dispatcher.bench.child import Child, running
from dispatcher.bench.contest import Contestant

DIRECT, RAW, CELERY = "direct", "raw", "celery"
LOAD = "dispatcher.bench.http_load"
_CELERY_TASK = "dispatcher.bench.celery_task"


def celery_is_missing() -> str | None:
    """Why Celery can't be measured here, or None."""
    if find_spec("celery"):
        return None
    return "Celery is not installed: pip install 'agent-reach-dispatcher[bench]'"


@asynccontextmanager
async def direct_call(folder: Path) -> AsyncIterator[Contestant]:
    """The agent's handler behind a bare HTTP server."""
    async with (
        running("server", folder, "-m", "dispatcher.bench.direct") as server,
        running("direct load", folder, "-m", LOAD) as load,
    ):
        url = (await server.wait_for(r'"url":"([^"]+)"'))[1]
        processes = {"server": server.pid, "load": load.pid}
        yield Contestant(name=DIRECT, driver=load, order={"url": url}, processes=processes)


@asynccontextmanager
async def raw_task(folder: Path, services: Services) -> AsyncIterator[Contestant]:
    """A task and its result over aio-pika alone."""
    reach = (services.broker, f"{services.prefix}-bare")
    async with (
        running("worker", folder, "-m", BARE, "worker", *reach) as worker,
        running("caller", folder, "-m", BARE, "caller", *reach) as caller,
    ):
        for child in (worker, caller):
            await child.wait_for("ready")
        try:
            yield _contestant(RAW, caller, worker, services)
        finally:
            await caller.ask({"do": "delete", "queues": [], "exchanges": []}, DELETE_S)


@asynccontextmanager
async def celery_task(folder: Path, services: Services) -> AsyncIterator[Contestant]:
    """A task and its result over Celery; its worker would make again what is deleted before it ended."""
    reach = (services.broker, f"{services.prefix}-celery")
    async with running("celery caller", folder, "-m", _CELERY_TASK, "caller", *reach) as caller:
        await caller.wait_for("ready")
        try:
            async with running("celery worker", folder, "-m", _CELERY_TASK, "worker", *reach) as worker:
                await worker.wait_for("ready")
                yield _contestant(CELERY, caller, worker, services)
        finally:
            await caller.ask({"do": "delete"}, DELETE_S)


def _contestant(name: str, caller: Child, worker: Child, services: Services) -> Contestant:
    broker = {name: pid for name, pid in services.processes().items() if name == "broker"}
    processes = {"caller": caller.pid, "worker": worker.pid, **broker}
    return Contestant(name=name, driver=caller, order={}, processes=processes)
