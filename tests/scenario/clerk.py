"""An agent under any name that handles papers, for tests that run several versions of this program.

`python clerk.py AGENT_ID [options of dispatcher.sdk.run]`; only what every version has is used here.
"""

import sys
from typing import Annotated

from pydantic import BaseModel

from dispatcher.clock import SystemClock
from dispatcher.sdk import Agent, From, Reply, TaskView, run

STAMPING_S, BINDING_S = 0.05, 12.0
agent = Agent(sys.argv[1])


class Stamped(BaseModel):
    """Who stamped, and the number of the stamp."""

    clerk: str
    number: str


class Stamp(BaseModel):
    """The stamp on what is to be filed."""

    number: Annotated[str, From("clerk.stamp/number")]


@agent.handler(
    "clerk.stamp",
    description=["给文件盖章", "Stamps papers"],
    examples=["请给这份合同盖章", "帮我在证明上盖个章", "put a stamp on my contract"],
    idempotent=True,
)
async def stamp(task: TaskView) -> Reply[Stamped]:
    """Take a moment, so that work is in hand whenever something stops."""
    await SystemClock().sleep(STAMPING_S)
    stamped = Stamped(clerk=agent.agent_id, number=f"no-{task.request_id}")
    return Reply(text="已盖章。" if task.is_chinese else "Stamped.", data=stamped)


@agent.handler(
    "clerk.file",
    description=["把文件归档到档案柜", "Files papers in the archive"],
    examples=["把文件归档", "归档到档案柜", "file it in the archive"],
    idempotent=True,
)
async def file(stamp: Stamp, task: TaskView) -> Reply[dict[str, str]]:
    """Goes by the number of the stamp."""
    await SystemClock().sleep(STAMPING_S)
    return Reply(text=stamp.number, data={"clerk": agent.agent_id})


@agent.handler(
    "clerk.bind",
    description=["装订论文和书", "Binds books and theses"],
    examples=["请把这本书装订好", "帮我装订论文", "bind my thesis, please"],
    idempotent=False,
    timeout_s=90,
)
async def bind(task: TaskView) -> Reply[dict[str, str]]:
    """A long task, which must not be repeated."""
    await SystemClock().sleep(BINDING_S)
    return Reply(text="已装订。" if task.is_chinese else "Bound.", data={"clerk": agent.agent_id})


if __name__ == "__main__":
    run(agent, sys.argv[2:])
