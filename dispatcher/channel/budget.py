"""The time a task may still take, which its wait in the agent's queue counts against."""

from dispatcher.errors import RefusedError
from dispatcher.protocol.frames import TaskFrame


def remaining_ms(task: TaskFrame) -> int:
    """What is left of the task's budget in ms; raises `RefusedError` (`expired`) where nothing is."""
    if task.budget_ms <= 0:
        raise RefusedError("the time of the task ran out before it was sent", code="expired")
    return task.budget_ms
