"""Named steps at which a process kills itself, for gateways and agents of tests only.

The environment variable `FAULTS_KILL_POINT` names the step. The product knows nothing of it: `arm`
wraps the methods between which a step lies, before anything of the product runs.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NoReturn

from dispatcher.channel.rabbitmq import RabbitChannel
from dispatcher.dispatch.collector import Collector
from dispatcher.gateway.edge import Edge
from dispatcher.gateway.whole import STATUS
from dispatcher.sdk.inbox import Judgement, Verdict
from dispatcher.sdk.rabbitmq import RabbitLink
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from dispatcher.store.direct_postgres import PostgresWriter
from dispatcher.store.direct_sqlite import SqliteWriter
from dispatcher.store.engine import Database
from dispatcher.store.ledger import SqlLedger
from tests.services.environment import variable

VARIABLE = "FAULTS_KILL_POINT"
ACCEPTED = 202
SENT_S = 0.05
"""By then the kernel has what was written to a socket."""

Method = Callable[..., Awaitable[Any]]


def arm() -> None:
    """Make this process die at the step that the environment names, if it names one."""
    name = variable(VARIABLE)
    if name:
        POINTS[name](name)


def _die(name: str) -> NoReturn:
    os.write(2, f"killed at {name}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("survived SIGKILL")


def _wrap(owner: object, method: str, around: Callable[[Method], Method]) -> None:
    setattr(owner, method, around(getattr(owner, method)))


def _before(name: str) -> Callable[[Method], Method]:
    def around(_: Method) -> Method:
        async def dying(*_: object, **__: object) -> NoReturn:
            _die(name)

        return dying

    return around


def _after(name: str, dies: Callable[[Any], bool] = lambda _: True) -> Callable[[Method], Method]:
    def around(method: Method) -> Method:
        async def dying(*arguments: Any, **named: Any) -> Any:
            answer = await method(*arguments, **named)
            return _die(name) if dies(answer) else answer

        return dying

    return around


def _before_commit_once(name: str, owner: object, method: str) -> None:
    """Die before the first transaction after `method` was called can commit.

    A direct writer commits as it writes, so there it is before the rows are sent; elsewhere after
    all of them were written.
    """
    called: list[bool] = []
    _wrap(owner, method, partial(_noting, called))
    writing = Database.writing
    for writer in (PostgresWriter, SqliteWriter):
        for write in ("insert", "update"):
            _wrap(writer, write, partial(_dying_once_called, name, called))

    @asynccontextmanager
    async def dying(database: Database) -> AsyncIterator[Any]:
        was_called = bool(called)
        async with writing(database) as connection:
            yield connection
            if was_called:
                _die(name)

    Database.writing = dying  # type: ignore[method-assign, assignment]


def _dying_once_called(name: str, called: list[bool], method: Method) -> Method:
    async def dying(*arguments: Any, **named: Any) -> Any:
        return _die(name) if called else await method(*arguments, **named)

    return dying


def _noting(called: list[bool], method: Method) -> Method:
    async def noting(*arguments: Any, **named: Any) -> Any:
        called.append(True)
        return await method(*arguments, **named)

    return noting


def _after_accepted(name: str) -> Callable[[Method], Method]:
    """Around the outermost ASGI application: die soon after the whole answer 202 was handed over."""

    def around(app: Method) -> Method:
        async def dying(edge: Edge, scope: Any, receive: Any, send: Any) -> None:
            await app(edge, scope, receive, send)
            if scope.get(STATUS) == ACCEPTED:
                asyncio.get_running_loop().call_later(SENT_S, _die, name)

        return dying

    return around


def _is_run(judgement: Judgement) -> bool:
    return judgement.verdict is Verdict.RUN


POINTS: Mapping[str, Callable[[str], None]] = {
    "before_accept_commit": lambda name: _before_commit_once(name, SqlLedger, "accept"),
    "after_accept_commit_before_publish": lambda name: _wrap(SqlLedger, "accept", _after(name)),
    "after_publish_before_mark": lambda name: _wrap(RabbitChannel, "send", _after(name)),
    "after_202": lambda name: _wrap(Edge, "__call__", _after_accepted(name)),
    "before_result_commit": lambda name: _before_commit_once(name, Collector, "on_result"),
    "after_result_commit_before_ack": lambda name: _wrap(Collector, "on_result", _after(name)),
    "received_before_claim": lambda name: _wrap(SqliteInbox, "claim", _before(name)),
    "after_claim": lambda name: _wrap(SqliteInbox, "claim", _after(name, _is_run)),
    "after_run_before_store": lambda name: _wrap(SqliteInbox, "finish", _before(name)),
    "after_store_before_publish": lambda name: _wrap(SqliteInbox, "finish", _after(name)),
    "after_publish_before_ack": lambda name: _wrap(RabbitLink, "publish_result", _after(name)),
}
"""What lies between two steps, in the order in which a request meets them."""
