"""A gate before an agent that tests can hold, and calls of a caller and of the dispatcher."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.identifiers import CallerId, Capability, callers_key
from dispatcher.protocol.direct import DirectKey, DirectKeys, Permit, make_ticket
from dispatcher.protocol.frames import ResultFrame, TaskContext, TaskFrame
from dispatcher.sdk.direct import DirectGate, GateReply, GateRules
from dispatcher.sdk.inbox import Claim, Judgement
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.parts import IntakeRules
from tests.sdk.stub_link import WAIT_S, task_frame
from tests.sdk.working import Work

CREDENTIAL = "the-dispatchers-own"
KEY = DirectKey(key_id="7", secret="ab" * 32)
KEYS = DirectKeys(agent_id="tester", keys=[KEY], renew_in_s=60)
RULES = GateRules(drain_s=0.0, intake=IntakeRules(look_s=0.001, pause_s=0.001))
BY_DISPATCHER = {"Authorization": f"Bearer {CREDENTIAL}"}


def direct_task(capability: str = "work.do", *, key: str = "k1", **more) -> TaskFrame:
    """A task as Alice's client sends it."""
    own = callers_key(CallerId("alice"), Capability(capability), key, "do it")
    return task_frame(capability, key=own, context=TaskContext(caller="alice"), **more)


def ticket(capability: str = "work.do", *, key: DirectKey = KEY) -> dict[str, str]:
    """The header of a call that Alice makes herself."""
    permit = Permit(caller="alice", capability=capability, agent_id="tester")
    return {"direct-ticket": make_ticket(key, permit)}


def sent(task: TaskFrame) -> bytes:
    """As it is posted."""
    return task.model_dump_json().encode()


@asynccontextmanager
async def gate_of(work: Work, inbox: MemoryInbox | None = None, **more) -> AsyncIterator[DirectGate]:
    """An open gate that knows the keys."""
    options = {"credential": CREDENTIAL, "rules": RULES, **more}
    async with (
        asyncio.timeout(WAIT_S),
        DirectGate(work.agent, inbox or MemoryInbox(), **options) as gate,
    ):
        gate.learn(KEYS.model_dump())
        yield gate


def result(reply: GateReply) -> ResultFrame:
    """What is told of the task."""
    assert reply.status == 200
    return ResultFrame.model_validate_json(reply.body)


class FailingInbox(MemoryInbox):
    """Can't be asked for the first `times`, then works."""

    def __init__(self, failure: Exception, times: int = 1_000_000) -> None:
        super().__init__()
        self._failure = failure
        self.left = times

    async def claim(self, claim: Claim) -> Judgement:
        self.left -= 1
        if self.left >= 0:
            raise self._failure
        return await super().claim(claim)
