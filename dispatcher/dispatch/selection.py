"""Asking routing who takes an intent now, with what the request allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from dispatcher.clock import Calendar
from dispatcher.dispatch.assign import Assignment
from dispatcher.dispatch.planning import Planned
from dispatcher.dispatch.request import Request, Task
from dispatcher.identifiers import AgentId, CallerId, Capability
from dispatcher.intents.plan import Intent
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.decision import Decision
from dispatcher.routing.record import read_ranking
from dispatcher.routing.router import Query, Router

FRAME_OVERHEAD_BYTES = 1024
"""What a task frame needs beyond its text, inputs and context; for the payload size check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Chooses agents from memory. `grants` answers for a caller now, so that retries are checked too (I6)."""

    router: Router
    directory: AgentDirectory
    grants: Callable[[CallerId], frozenset[Capability] | None]
    calendar: Calendar

    def choose(
        self,
        request: Request,
        intent: Intent,
        task: Task,
        tried: frozenset[AgentId],
        planned: Planned | None = None,
    ) -> Assignment:
        """Decide for one intent, from the ranking in `planned` or the one that a waiting task kept."""
        grants = self.grants(request.caller)
        query = Query(
            text=intent.text,
            capability=intent.capability,
            similarity=intent.confidence,
            allows=lambda capability: grants is None or capability in grants,
            environment=request.environment,
            payload_bytes=payload_bytes(request, intent, task.inputs),
            tried=tried,
            now=self.calendar.now(),
        )
        ranking = planned.ranking(intent.position) if planned else None
        if ranking is None and task.ranking is not None:
            ranking = read_ranking(task.ranking)
        return self._assignment(self.router.decide(query, ranking))

    def _assignment(self, decision: Decision) -> Assignment:
        if decision.agent_id is None or decision.capability is None:
            return Assignment(decision=decision)
        for agent in self.directory.group(decision.capability):
            declared = agent.capability(decision.capability)
            if agent.agent_id == decision.agent_id and declared is not None:
                return Assignment(
                    decision=decision, idempotent=declared.idempotent, timeout_ms=declared.timeout_ms
                )
        return Assignment(decision=decision)


def payload_bytes(request: Request, intent: Intent, inputs: Mapping[str, object]) -> int:
    """Size of the task frame that this intent will need, in bytes, a little over-estimated."""
    body = orjson.dumps({"text": intent.text, "input": dict(inputs), "context": dict(request.context)})
    return len(body) + FRAME_OVERHEAD_BYTES
