"""An agent under any name that stamps and binds papers, for tests that run several versions of this program.

`python clerk.py AGENT_ID [options of dispatcher.sdk.run]`; only what every version has is used here.
"""

import sys

from dispatcher.clock import SystemClock
from dispatcher.sdk import Agent, Reply, TaskView, run

STAMPING_S, BINDING_S = 0.05, 12.0
agent = Agent(sys.argv[1])


@agent.handler(
    "clerk.stamp",
    description=["给文件盖章", "Stamps papers"],
    examples=["请给这份合同盖章", "帮我在证明上盖个章", "put a stamp on my contract"],
    idempotent=True,
)
async def stamp(task: TaskView) -> Reply[dict[str, str]]:
    """Take a moment, so that work is in hand whenever something stops."""
    await SystemClock().sleep(STAMPING_S)
    return Reply(text="已盖章。" if task.is_chinese else "Stamped.", data={"clerk": agent.agent_id})


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
