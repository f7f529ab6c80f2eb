"""What an agent or a caller imports.

from dispatcher.sdk import Agent, Reply, TaskView, run

from dispatcher.sdk import Client
"""

from typing import TYPE_CHECKING, Any

from dispatcher.sdk.agent import Agent
from dispatcher.sdk.field_source import Entity, From
from dispatcher.sdk.main import run
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.on_demand import public
from dispatcher.sdk.reply import BusinessError, NeedsInput, Reply
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.sdk.task_view import TaskView

if TYPE_CHECKING:
    from dispatcher.sdk.client import CallError, Client
    from dispatcher.sdk.client_stream import Event
    from dispatcher.sdk.direct import DirectGate
    from dispatcher.sdk.direct_calls import DirectRules
    from dispatcher.sdk.postgres_inbox import PostgresInbox
    from dispatcher.sdk.request_answer import RequestAnswer
    from dispatcher.sdk.sqlite_inbox import SqliteInbox

__all__ = [
    "Agent",
    "BusinessError",
    "CallError",
    "Client",
    "DirectGate",
    "DirectRules",
    "Entity",
    "Event",
    "From",
    "MemoryInbox",
    "NeedsInput",
    "PostgresInbox",
    "Reply",
    "RequestAnswer",
    "Runtime",
    "RuntimeOptions",
    "SqliteInbox",
    "TaskView",
    "run",
    "serving",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has that name
    """What not every agent needs is loaded when it is first asked for (PEP 562)."""
    return public(name)
