"""`python -m tests.faults.bent …`: the `dispatcher` command with an in-process channel or a schema bent.

The environment variable `FAULTS_BEND` names what is bent; kill points work as in `tests.faults.gateway`.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from dispatcher.__main__ import main
from dispatcher.channel.in_process import InProcessChannel
from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import TaskFrame
from dispatcher.store.direct_sqlite import SqliteWriter
from tests.faults import kill_points
from tests.services.environment import variable

VARIABLE = "FAULTS_BEND"
RELEASE = Path("release")
"""A file in the working folder: while it is missing, held tasks are not sent."""
HELD_AGENT = "order"
STATEMENTS = 12
"""So many statements of a migration run before the process dies."""
_send = InProcessChannel.send
_clock = SystemClock()


async def _send_thrice(
    channel: InProcessChannel, agent_id: AgentId, task: TaskFrame, *, bound: bool = False
) -> None:
    for _ in range(3):
        await _send(channel, agent_id, task, bound=bound)


async def _send_with_junk(
    channel: InProcessChannel, agent_id: AgentId, task: TaskFrame, *, bound: bool = False
) -> None:
    channel.queue_of(agent_id).put(b'{"v": 1, "type": "task", ', _clock.monotonic() + 60)
    await _send(channel, agent_id, task, bound=bound)


async def _send_and_die(
    channel: InProcessChannel, agent_id: AgentId, task: TaskFrame, *, bound: bool = False
) -> None:
    await _send(channel, agent_id, task, bound=bound)
    _die("after_send_before_mark")


async def _send_when_released(
    channel: InProcessChannel, agent_id: AgentId, task: TaskFrame, *, bound: bool = False
) -> None:
    while agent_id == HELD_AGENT and not RELEASE.exists():  # noqa: ASYNC240 - one look every 20 ms
        await _clock.sleep(0.02)
    await _send(channel, agent_id, task, bound=bound)


def _bend_sends(send: Callable[..., Any]) -> Callable[[], None]:
    return lambda: setattr(InProcessChannel, "send", send)


def _die_before_commit() -> None:
    insert = SqliteWriter._insert

    def dying(connection: Any, changes: Any) -> None:
        insert(connection, changes)
        _die("before_accept_commit")

    SqliteWriter._insert = staticmethod(dying)  # type: ignore[method-assign, assignment]


def _die_in_migration() -> None:
    made = count(1)

    def executed(*arguments: Any) -> None:
        if str(arguments[2]).lstrip().startswith("CREATE") and next(made) == STATEMENTS:
            _die("in_migration")

    event.listen(Engine, "after_cursor_execute", executed)


def _die(name: str) -> None:
    os.write(2, f"killed at {name}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


BENDS: Mapping[str, Callable[[], None]] = {
    "tripled": _bend_sends(_send_thrice),
    "junk": _bend_sends(_send_with_junk),
    "held": _bend_sends(_send_when_released),
    "after_send_before_mark": _bend_sends(_send_and_die),
    "before_accept_commit": _die_before_commit,
    "in_migration": _die_in_migration,
}

if __name__ == "__main__":
    sys.argv[0] = "dispatcher"
    kill_points.arm()
    if name := variable(VARIABLE):
        BENDS[name]()
    main()
