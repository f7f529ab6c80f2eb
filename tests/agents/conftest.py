import pytest

from dispatcher.sdk.handler_call import Call
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.task_view import TaskView


@pytest.fixture
def ask():
    """Run an agent's only handler as the runtime would: `await ask(agent, text, fields, user_id=…)`."""

    async def asking(agent, text, fields=None, *, language="en", user_id=None):
        (handler,) = agent.handlers.values()
        view = TaskView(
            request_id="request-1",
            task_id="task-1",
            attempt=1,
            idempotency_key="request-1:0",
            capability=handler.capability,
            text=text,
            language=language,
            user_id=user_id,
        )
        async with HandlerThread(1) as handlers:
            handlers.take_place()
            return await handlers.run(Call(handler=handler, fields=fields or {}, view=view, seconds=10.0))

    return asking
