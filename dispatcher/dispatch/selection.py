"""Asking routing who takes an intent now, with what the request allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import orjson

from dispatcher.clock import Calendar
from dispatcher.dispatch.lifecycle.assign import Assignment
from dispatcher.dispatch.lifecycle.request import Request, Task
from dispatcher.dispatch.planning import Planned
from dispatcher.identifiers import AgentId, CallerId, Capability
from dispatcher.intents.plan import Intent
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.decision import Decision, Outcome
from dispatcher.routing.record import read_ranking
from dispatcher.routing.router import Query, Ranking, Router

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
        inputs: Mapping[str, object] | None = None,
        planned: Planned | None = None,
    ) -> Assignment:
        """Decide for one intent, from the ranking in `planned` or the one that a waiting task kept.

        `inputs` are those of a task that does not have them yet, None stands for the task's own. What
        an operator repeats and must not run twice stays with its agent: only that one's inbox knows
        whether it ran (I2).
        """
        if task.repeat and task.agent_id is not None and not task.idempotent:
            return self.choose_only(task.agent_id, request, intent, task, tried)
        asked = self._query(request, intent, tried, task.inputs if inputs is None else inputs)
        return self._assignment(self.router.decide(asked, _ranking(intent, task, planned)))

    def choose_only(
        self, agent_id: AgentId, request: Request, intent: Intent, task: Task, tried: frozenset[AgentId]
    ) -> Assignment:
        """Decide for one intent of a named capability: this agent takes it, or nobody."""
        group = self.directory.group(intent.capability) if intent.capability else ()
        others = {agent.agent_id for agent in group} - {agent_id}
        asked = self._query(request, intent, tried | others, task.inputs)
        assignment = self._assignment(self.router.decide(asked, _ranking(intent, task, None)))
        decision = assignment.decision
        if decision.agent_id in {agent_id, None}:
            return assignment
        nobody = replace(decision, agent_id=None, outcome=Outcome.UNAVAILABLE, reason="not_eligible")
        return Assignment(decision=nobody)

    def _query(
        self, request: Request, intent: Intent, tried: frozenset[AgentId], inputs: Mapping[str, object]
    ) -> Query:
        grants = self.grants(request.caller)
        return Query(
            text=intent.text,
            capability=intent.capability,
            similarity=intent.confidence,
            allows=lambda capability: grants is None or capability in grants,
            environment=request.environment,
            payload_bytes=payload_bytes(request, intent, inputs),
            tried=tried,
            now=self.calendar.now(),
        )

    def _assignment(self, decision: Decision) -> Assignment:
        if decision.agent_id is None or decision.capability is None:
            return Assignment(decision=decision)
        group = self.directory.group(decision.capability)
        agent = next((agent for agent in group if agent.agent_id == decision.agent_id), None)
        declared = agent.capability(decision.capability) if agent else None
        if agent is None or declared is None:
            return Assignment(decision=decision)
        return Assignment(
            decision=decision,
            idempotent=declared.idempotent,
            timeout_ms=declared.timeout_ms,
            leases=agent.declaration.leases,
        )


def _ranking(intent: Intent, task: Task, planned: Planned | None) -> Ranking | None:
    """The ranking that the plan came from; of a task that waited the one it kept."""
    ranking = planned.ranking(intent.position) if planned else None
    if ranking is None and task.ranking is not None:
        return read_ranking(task.ranking)
    return ranking


def payload_bytes(request: Request, intent: Intent, inputs: Mapping[str, object]) -> int:
    """Size of the task frame that this intent will need, in bytes, a little over-estimated."""
    body = orjson.dumps({"text": intent.text, "input": dict(inputs), "context": dict(request.context)})
    return len(body) + FRAME_OVERHEAD_BYTES
