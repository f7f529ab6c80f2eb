"""A frame for the tests of channels."""

from dispatcher.protocol.frames import TaskFrame, TaskPayload

TASK = TaskFrame(
    request_id="r1",
    task_id="t1",
    attempt=1,
    idempotency_key="r1:0",
    token="0123456789abcdef",  # noqa: S106
    agent_id="order",
    capability="order.query",
    payload=TaskPayload(text="where is it"),
    budget_ms=5000,
    start_within_ms=5000,
    reply_to="results",
)
