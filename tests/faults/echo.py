"""An agent that echoes a nonce and writes down when its handlers begin and end.

`python -m tests.faults.echo AGENT_ID LOG [options of dispatcher.sdk.run]`
"""

import json
import os
import signal
import sys
from pathlib import Path

from dispatcher.clock import SystemClock
from dispatcher.identifiers import new_id
from dispatcher.sdk import Agent, Reply, TaskView, run
from tests.faults import kill_points

SAFE = "echo.safe"
"""Idempotent."""
ONCE = "echo.once"
"""Not idempotent."""
BRIEF = "echo.brief"
"""Not idempotent, and its time is over after two seconds."""
FATAL = "echo.fatal"
"""Idempotent, and kills its process."""
LIMIT_S = {SAFE: 60.0, ONCE: 60.0, BRIEF: 2.0, FATAL: 50.0}


class Journal:
    """Appends one JSON line per event; what is written survives a SIGKILL of its process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._clock = SystemClock()
        self._instance = new_id()
        self.write("born")

    def write(self, event: str, **facts: object) -> None:
        line = {"event": event, "time": self._clock.monotonic(), "instance": self._instance, **facts}
        os.write(self._file, json.dumps(line).encode() + b"\n")


class Echo:
    """The handlers' work: take the time that the request asks for, then echo its nonce."""

    def __init__(self, agent_id: str, journal: Journal) -> None:
        self._agent_id = agent_id
        self._journal = journal
        self._clock = SystemClock()

    async def answer(self, task: TaskView) -> Reply[dict[str, object]]:
        nonce, work_s = str(task.data.get("nonce")), float(task.data.get("work_s", 0))
        ran = new_id()
        self._journal.write(
            "started",
            run=ran,
            agent=self._agent_id,
            request_id=task.request_id,
            key=task.idempotency_key,
            attempt=task.attempt,
            nonce=nonce,
        )
        if task.capability == FATAL:
            os.kill(os.getpid(), signal.SIGKILL)
        cancelled = True
        try:
            await self._clock.sleep(work_s)
            cancelled = False
        finally:
            self._journal.write("ended", run=ran, cancelled=cancelled)
        return Reply(text=nonce, data={"nonce": nonce, "run": ran})


def echo_agent(agent_id: str, log: Path, *, max_load: int = 8) -> Agent:
    """The agent; its process is the unit that a test kills."""
    made = Agent(agent_id, max_load=max_load)
    echo = Echo(agent_id, Journal(log))

    for capability, limit_s in LIMIT_S.items():
        made.handler(
            capability,
            description=f"Echoes what it is given ({capability})",
            examples=[f"echo this by {capability}", f"say it again, {capability}", f"repeat, {capability}"],
            idempotent=capability in {SAFE, FATAL},
            timeout_s=limit_s,
        )(echo.answer)
    return made


if __name__ == "__main__":
    kill_points.arm()
    run(echo_agent(sys.argv[1], Path(sys.argv[2])), sys.argv[3:])
