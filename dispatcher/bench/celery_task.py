"""The same task over Celery: what a task queue with fewer guarantees takes.

RabbitMQ, a pool of threads, late acknowledgement, confirmed publishes, persistent results in the
caller's reply queues (`rpc`). All else is as Celery comes: a durable classic task queue, and a
connection and a reply queue for each thread that calls.
`python -m dispatcher.bench.celery_task caller|worker URL NAME`, orders on the caller's input.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery import Celery, signals

from dispatcher.bench.closed_loop import Outcomes
from dispatcher.bench.echo import AT_ONCE, note
from dispatcher.bench.station import Order, Reply, run_station, say, serve_orders
from dispatcher.identifiers import new_id

THREADS = 16
MOST_CALLERS = 1_000
_TIMEOUT_S = 30.0


def make_app(url: str, name: str, connections: int) -> Celery:
    """An app whose one task is called, and whose one queue is named, `name`."""
    app = Celery("bench", broker=url, backend="rpc://")
    app.conf.update(
        task_default_queue=name,
        task_acks_late=True,
        result_persistent=True,
        broker_transport_options={"confirm_publish": True},
        broker_pool_limit=connections,
        broker_connection_retry_on_startup=True,
        worker_prefetch_multiplier=AT_ONCE // THREADS,
        worker_enable_remote_control=False,
        worker_redirect_stdouts=False,
    )
    return app


def answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the task does: it returns what it was sent."""
    return {"status": "success", "text": "done", "data": given["input"]}


def work(url: str, name: str) -> None:
    """Answer every task, until the input ends."""
    app = make_app(url, name, THREADS)
    app.task(name=name)(answer)

    def on_ready(**_: object) -> None:
        say({"ready": True})

    signals.worker_ready.connect(on_ready, weak=False)
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING")
    app.worker_main(["--quiet", "worker", "--pool=threads", f"--concurrency={THREADS}", *quiet])


def _stop_at_end_of_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


class Caller:
    """Calls from as many threads as there are callers, as a threaded server would."""

    def __init__(self, app: Celery, name: str, pool: ThreadPoolExecutor) -> None:
        self._app = app
        self._name = name
        self._pool = pool

    async def obey(self, order: Order) -> Reply:
        """Measure as told, or delete what was made at the broker."""
        if order["do"] == "closed":
            return await asyncio.to_thread(self._closed, order)
        return await asyncio.to_thread(self._delete)

    def _closed(self, order: Order) -> Reply:
        task = {"text": "where is my parcel", "input": {"note": note(order["payload_kb"])}}
        seen, seconds = Outcomes(), order["seconds"]
        until = time.perf_counter() + seconds

        def go_on() -> None:
            while (asked := time.perf_counter()) < until:
                seen.note(asked, worked=self._call(task))

        for ended in [self._pool.submit(go_on) for _ in range(order["concurrency"])]:
            ended.result()
        return seen.report()

    def _call(self, task: Mapping[str, Any]) -> bool:
        """One round trip."""
        given = {"task_id": new_id(), **task}
        result = self._app.send_task(self._name, (given,), queue=self._name)
        return bool(result.get(timeout=_TIMEOUT_S)["status"] == "success")

    def _delete(self) -> Reply:
        with self._app.connection_for_write() as connection:
            channel = connection.channel()
            channel.queue_delete(self._name)
            channel.exchange_delete(self._name)
        return {"deleted": 2}


async def call(url: str, name: str) -> None:
    """Take orders until the input ends."""
    app = make_app(url, name, MOST_CALLERS)
    with ThreadPoolExecutor(MOST_CALLERS) as pool:
        say({"ready": True})
        await serve_orders(Caller(app, name, pool).obey)


if __name__ == "__main__":
    if sys.argv[1] == "caller":
        run_station(call(*sys.argv[2:]))
    else:
        work(*sys.argv[2:])
