"""What an agent or a caller imports.

from dispatcher.sdk import Agent, Reply, TaskView, run

from dispatcher.sdk import Client
"""

from dispatcher.sdk.agent import Agent
from dispatcher.sdk.client import CallError, Client, RequestAnswer
from dispatcher.sdk.field_source import Entity, From
from dispatcher.sdk.main import run
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.reply import BusinessError, NeedsInput, Reply
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from dispatcher.sdk.task_view import TaskView

__all__ = [
    "Agent",
    "BusinessError",
    "CallError",
    "Client",
    "Entity",
    "From",
    "MemoryInbox",
    "NeedsInput",
    "Reply",
    "RequestAnswer",
    "Runtime",
    "RuntimeOptions",
    "SqliteInbox",
    "TaskView",
    "run",
    "serving",
]
