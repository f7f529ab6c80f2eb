"""Word to agents over HTTP that a task is wanted no more: best effort, beside the calls."""

import asyncio
import logging

from dispatcher.channel.http_call import HttpCaller
from dispatcher.channel.http_slots import CallSlots
from dispatcher.errors import DeliveryError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import CancelFrame

log = logging.getLogger(__name__)


class CancelPosts:
    """Tells each agent once, for as many tasks at a time as `slots` has places for; the next is lost."""

    def __init__(self, caller: HttpCaller, slots: CallSlots) -> None:
        self._caller = caller
        self._slots = slots
        self.running: set[asyncio.Task[None]] = set()

    def begin(self, agent_id: AgentId, endpoint: str, frame: CancelFrame, group: asyncio.TaskGroup) -> None:
        """Tell the agent in `group`; nobody waits for it, and nothing follows from what it answers."""
        try:
            self._slots.take(agent_id)
        except DeliveryError as error:
            log.warning("http.cancel_lost", extra={**_facts(frame), "reason": error.message})
            return
        telling = group.create_task(self._tell(endpoint, frame))
        self.running.add(telling)
        telling.add_done_callback(lambda done: self._ended(agent_id, done))

    async def _tell(self, endpoint: str, frame: CancelFrame) -> None:
        try:
            status = await self._caller.cancel(endpoint, frame)
        except DeliveryError as error:
            log.info("http.cancel_lost", extra={**_facts(frame), "reason": error.message})
        except Exception:
            log.exception("http.cancel_failed", extra=_facts(frame))
        else:
            log.info("http.cancel_told", extra={**_facts(frame), "status": status})

    def _ended(self, agent_id: AgentId, telling: asyncio.Task[None]) -> None:
        self.running.discard(telling)
        self._slots.give_back(agent_id)


def _facts(frame: CancelFrame) -> dict[str, str]:
    return {"request_id": frame.request_id, "task_id": frame.task_id, "agent_id": frame.agent_id}
