"""Asking routing who takes an intent now, with what the request allows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from dispatcher.clock import Calendar
from dispatcher.dispatch.fallback import Fallback, FallbackKind, handed_over, instead
from dispatcher.dispatch.lifecycle.assign import Assignment
from dispatcher.dispatch.lifecycle.option import DescribedOption, description_for
from dispatcher.dispatch.lifecycle.request import Request, Task
from dispatcher.dispatch.planning import Planned
from dispatcher.identifiers import AgentId, CallerId, Capability
from dispatcher.intents.plan import Intent
from dispatcher.records import replace
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.decision import Decision, Outcome
from dispatcher.routing.record import read_ranking
from dispatcher.routing.reindex import Routes
from dispatcher.routing.router import Query, Ranking

FRAME_OVERHEAD_BYTES = 1024
"""What a task frame needs beyond its text, inputs and context; for the payload size check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Chooses agents from memory. `grants` answers for a caller now, so that retries are checked too (I6)."""

    router: Routes
    directory: AgentDirectory
    grants: Callable[[CallerId], frozenset[Capability] | None]
    calendar: Calendar
    fallback: Fallback = field(default_factory=Fallback)

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
        whether it ran (I2). What is out of scope goes where `fallback` says; a capability that the caller
        named goes nowhere else.
        """
        if task.repeat and task.agent_id is not None and not task.idempotent:
            return self.choose_only(task.agent_id, request, intent, task, tried)
        asked = self._query(request, intent, task, tried, inputs)
        ranking = _ranking(intent, task, planned)
        decision = self.router.decide(asked, ranking)
        if decision.outcome is Outcome.OUT_OF_SCOPE:
            if planned is not None and planned.described is not None:
                decision = handed_over(decision, planned.described)
            elif ranking is not None:
                decision = self._fall_back(asked, decision)
        if decision.options:
            return Assignment(decision=decision, options=self._described(decision, request.language))
        return self._assignment(decision)

    def asked_for(self, caller: CallerId, planned: Planned) -> Sequence[Capability | None]:
        """The capability that each intent would need an agent of; None where the caller gets none."""
        grants = self.grants(caller)
        may_fall_back = self.fallback.kind is FallbackKind.AGENT and planned.described is None
        net = self.fallback.capability if may_fall_back and planned.rankings else None
        granted = [_if_granted(one.capability, grants) for one in planned.plan.intents]
        return [one or _if_granted(net, grants) for one in granted]

    def hands_over(self, caller: CallerId, planned: Planned) -> bool:
        """Whether a part of the plan would go to a person: out of scope, or not granted."""
        if planned.described is None and self.fallback.kind is not FallbackKind.PEOPLE:
            return False
        if planned.described is None and not planned.rankings:
            return False  # named, or the answer to a question: it goes nowhere else
        return any(one is None for one in self.asked_for(caller, planned))

    def choose_only(
        self, agent_id: AgentId, request: Request, intent: Intent, task: Task, tried: frozenset[AgentId]
    ) -> Assignment:
        """Decide for one intent of a named capability: this agent takes it, or nobody."""
        wanted = _asked_for(intent, task)
        group = self.directory.group(wanted) if wanted else ()
        others = {agent.agent_id for agent in group} - {agent_id}
        asked = self._query(request, intent, task, tried | others, None)
        assignment = self._assignment(self.router.decide(asked, _ranking(intent, task, None)))
        decision = assignment.decision
        if decision.agent_id in {agent_id, None}:
            return assignment
        nobody = replace(decision, agent_id=None, outcome=Outcome.UNAVAILABLE, reason="not_eligible")
        return Assignment(decision=nobody)

    def _fall_back(self, asked: Query, refused: Decision) -> Decision:
        capability = self.fallback.capability
        if self.fallback.kind is FallbackKind.PEOPLE:
            return handed_over(refused)
        if self.fallback.kind is FallbackKind.HINT or capability is None:
            return refused
        named = replace(asked, capability=capability, similarity=1.0)
        return instead(refused, self.router.decide(named))

    def _described(self, decision: Decision, language: str) -> tuple[DescribedOption, ...]:
        return tuple(
            DescribedOption(
                capability=one.capability,
                description=description_for(self._descriptions(one.capability), one.capability, language),
                similarity=one.similarity,
            )
            for one in decision.options
        )

    def _descriptions(self, capability: Capability) -> Sequence[str]:
        declared = (agent.capability(capability) for agent in self.directory.group(capability))
        return [text for one in declared if one is not None for text in one.descriptions]

    def _query(
        self,
        request: Request,
        intent: Intent,
        task: Task,
        tried: frozenset[AgentId],
        inputs: Mapping[str, object] | None,
    ) -> Query:
        grants = self.grants(request.caller)
        return Query(
            text=intent.text,
            capability=_asked_for(intent, task),
            similarity=_similarity(intent, task),
            allows=lambda capability: grants is None or capability in grants,
            environment=request.environment,
            payload_bytes=payload_bytes(request, intent, task.inputs if inputs is None else inputs),
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


def _asked_for(intent: Intent, task: Task) -> Capability | None:
    """The capability: an opened task stays with its agent's own, which may be a near one (I2)."""
    return task.capability or intent.capability


def _if_granted(one: Capability | None, grants: frozenset[Capability] | None) -> Capability | None:
    return one if grants is None or one in grants else None


def _similarity(intent: Intent, task: Task) -> float:
    """What the fallback got counts as if its caller had named it, each time."""
    return 1.0 if intent.capability is None and task.capability is not None else intent.confidence


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
