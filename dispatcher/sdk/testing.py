"""For tests of agents: the real chain in one process, or one handler alone.

    async with running(agent) as client:
        answer = await client.chat("where is order 7?", capability="order.query")

The chain is the gateway's application, the dispatcher, SQLite in a temporary folder, the
in-process channel, and the hashing encoder: texts need words in common with the examples, or
name the capability. Needs the `server` extra.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dispatcher.assembly.running import local_settings, open_dispatcher
from dispatcher.errors import ConfigurationError, first_error
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.asgi_transport import AsgiTransport
from dispatcher.sdk.client import Client
from dispatcher.sdk.handler_call import Call
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.outcome import Outcome
from dispatcher.sdk.runtime import Runtime, serving
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from dispatcher.sdk.task_view import TaskView


class ViewOptions(TypedDict, total=False):
    """Fields of a `TaskView` that a handler may look at."""

    entities: tuple[Mapping[str, Any], ...]
    user_id: str
    session_id: str
    language: str
    data: Mapping[str, Any]


@asynccontextmanager
async def running(*agents: Agent) -> AsyncIterator[Client]:
    """A dispatcher with these agents and a client to talk to it, until the block ends.

    Each agent remembers its tasks in a SQLite file, so that any capability may be declared. What the
    block raises comes out as it is; if a part fails first, its error does, without the groups around it.
    """
    raised: BaseException | None = None
    cause: BaseException | None = None
    try:
        async with _chain(agents) as client:
            try:
                yield client
            except BaseException as error:
                raised, cause = error, error.__cause__
                raise
    except BaseExceptionGroup as group:
        if raised is None or isinstance(raised, asyncio.CancelledError):
            raised = first_error(group)
            cause = raised.__cause__
    if raised is not None:
        raise raised from cause  # its own: on the way out the groups were made its cause


@asynccontextmanager
async def _chain(agents: Sequence[Agent]) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        dispatcher = await stack.enter_async_context(open_dispatcher(local_settings(folder)))
        if dispatcher.link is None:
            raise ConfigurationError("tests run over the in-process channel")
        for agent in agents:
            inbox = await SqliteInbox.open(folder / f"{agent.agent_id}.inbox.sqlite")
            stack.push_async_callback(inbox.aclose)
            await stack.enter_async_context(serving(Runtime(agent, dispatcher.link, inbox)))
        transport = AsgiTransport(dispatcher.app)
        yield await stack.enter_async_context(Client("http://in-process", transport=transport))


async def run_handler(
    agent: Agent, capability: str, fields: Mapping[str, Any] | None = None, *, view: TaskView | None = None
) -> Outcome:
    """Run one handler as the runtime would, without dispatcher, inbox and channel.

    `fields` is the input as it would come over the wire. Raises KeyError for an unknown capability.
    """
    handler = agent.handlers[capability]
    seen = view or task_view(capability=capability)
    async with HandlerThread(1) as handlers:
        handlers.take_place()
        call = Call(handler=handler, fields=dict(fields or {}), view=seen, seconds=handler.timeout_s)
        return await handlers.run(call)


def task_view(*, capability: str = "test", text: str = "", **more: Unpack[ViewOptions]) -> TaskView:
    """A task view with made-up identifiers."""
    return TaskView(
        request_id="request-1",
        task_id="task-1",
        attempt=1,
        idempotency_key="request-1:0",
        capability=capability,
        text=text,
        **more,
    )
