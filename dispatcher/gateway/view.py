"""How requests, plans, decisions and trials look from outside; pure.

A caller never learns of capabilities that it was not granted: to it they do not exist.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

import orjson

from dispatcher.dispatch.lifecycle.dead_letter import cause_of
from dispatcher.dispatch.lifecycle.events import Event, EventKind
from dispatcher.dispatch.lifecycle.handoff import NO_HANDOFFS, Handoff
from dispatcher.dispatch.lifecycle.ledger import DeadEntry
from dispatcher.dispatch.lifecycle.part import parts
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    DecisionRecord,
    PartialRecord,
    RequestState,
    RequestStatus,
    Task,
)
from dispatcher.gateway.parts import Explanation, TextRanking
from dispatcher.identifiers import Capability, TaskId
from dispatcher.intents.plan import Intent
from dispatcher.registry.access import Identity
from dispatcher.registry.description import AgentDescription
from dispatcher.routing.decision import Outcome, Rejection
from dispatcher.routing.index import NOT_SEARCHED
from dispatcher.routing.record import decision_document

Document = dict[str, object]

_OFFLINE = frozenset({"winner", "contrast", "ranked_text", "refused_for", "own_similarity", "own_candidates"})
"""Members of a decision that only those who work offline need."""
_HIDDEN: Document = {
    "outcome": Outcome.OUT_OF_SCOPE,
    "reason": Outcome.OUT_OF_SCOPE,
    "capability": None,
    "agent_id": None,
    "similarity": None,
    "score": None,
    "scope_score": None,
    "advice": [],
    "shadow": None,
}


def request_view(state: RequestState, handoffs: Mapping[TaskId, Handoff] = NO_HANDOFFS) -> Document:
    """A request with its parts and what people said to them."""
    request = state.request
    return {
        "request_id": request.request_id,
        "status": request.status,
        "answer": request.answer,
        "parts": parts(state, handoffs),
    }


def records_view(records: Iterable[DecisionRecord], identity: Identity) -> list[Document]:
    """Stored decisions as this identity may see them."""
    return [_decision_view(r.position, r.number, orjson.loads(r.document), identity) for r in records]


def event_view(event: Event, identity: Identity) -> Document:
    """What an event says, as this identity may see it."""
    state = event.state
    match event.record:
        case None:
            return _whole_view(event.kind, state, identity)
        case DecisionRecord() as record:
            return records_view([record], identity)[0]
        case Attempt() as attempt:
            return _attempt_view(event.kind, attempt, state)
        case PartialRecord() as partial:
            return _partial_view(partial, state)
        case Task() as task:
            return {"position": task.position, **parts(state)[task.position]}


def _whole_view(kind: EventKind, state: RequestState, identity: Identity) -> Document:
    if kind is EventKind.ACCEPTED:
        return {"request_id": state.request.request_id, "status": RequestStatus.OPEN}
    if kind is EventKind.PLAN:
        intents = [_intent_view(intent, identity) for intent in state.intents]
        return {"language": state.request.language, "intents": intents}
    return request_view(state)


def explanation_view(explanation: Explanation, identity: Identity) -> Document:
    """A plan with its decisions, as this identity may see them."""
    decisions = [orjson.loads(decision_document(decision)) for decision in explanation.decisions]
    return {
        "language": explanation.plan.language,
        "intents": [_intent_view(intent, identity) for intent in explanation.plan.intents],
        "decisions": [_decision_view(i, 1, d, identity) for i, d in enumerate(decisions)],
    }


def trial_view(rankings: Iterable[TextRanking], declared: frozenset[str]) -> Document:
    """Where the capabilities named in `declared` come for each text, and against whom."""
    return {"rankings": [_ranking_view(ranking, declared) for ranking in rankings]}


def agent_view(description: AgentDescription) -> Document:
    """An agent: what it declared and, apart from it, what was observed."""
    agent, status = description.agent, description.status
    return {
        "agent_id": agent.agent_id,
        "environment": agent.environment,
        "digest": agent.digest,
        "declaration": agent.declaration,
        "status": {**asdict(status), "load": status.load},
        "success": description.success,
        "instances": description.instances,
    }


def agents_view(descriptions: Iterable[AgentDescription]) -> Document:
    """Several agents, in the order given."""
    return {"agents": [agent_view(description) for description in descriptions]}


def _decision_view(position: int, number: int, decision: Document, identity: Identity) -> Document:
    shown = {name: value for name, value in decision.items() if name not in _OFFLINE}
    view: Document = {"position": position, "number": number, **shown}
    if identity.grants is None:
        return view
    if not _shows(view.get("capability"), identity):
        is_with_people = view["outcome"] == Outcome.HANDED_OFF
        view |= _HIDDEN | ({"outcome": Outcome.HANDED_OFF} if is_with_people else {})
    view["options"] = [
        option for option in _mappings(view.get("options")) if _shows(option["capability"], identity)
    ]
    view["candidates"] = [
        candidate
        for candidate in _mappings(view.get("candidates"))
        if _shows(candidate["capability"], identity)
    ]
    left_out = view.get("left_out")
    if isinstance(left_out, Mapping):
        view["left_out"] = {k: v for k, v in left_out.items() if k != Rejection.NOT_GRANTED}
    return view


def _attempt_view(kind: EventKind, attempt: Attempt, state: RequestState) -> Document:
    named: Document = {"position": _position(attempt.task_id, state), "attempt": attempt.number}
    if kind is EventKind.DELIVERY:
        return {**named, "agent_id": attempt.agent_id}
    said = attempt.progress or {}
    return {**named, "fraction": said.get("fraction"), "note": said.get("note")}


def _partial_view(partial: PartialRecord, state: RequestState) -> Document:
    result = orjson.loads(partial.document)
    return {
        "position": _position(partial.task_id, state),
        "attempt": partial.attempt,
        "sequence": partial.sequence,
        "result": {"text": result["text"], "data": result["data"]},
    }


def _position(task_id: TaskId, state: RequestState) -> int:
    return next(task.position for task in state.tasks if task.task_id == task_id)


def _shows(capability: object, identity: Identity) -> bool:
    return isinstance(capability, str) and identity.allows(Capability(capability))


def _mappings(value: object) -> Sequence[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _intent_view(intent: Intent, identity: Identity) -> Document:
    is_shown = _shows(intent.capability, identity)
    return {
        "position": intent.position,
        "text": intent.text,
        "capability": intent.capability if is_shown else None,
        "confidence": intent.confidence if is_shown else 0.0,
        "entities": [entity.to_json() for entity in intent.entities],
        "inputs": intent.inputs if is_shown else {},
        "missing": intent.missing if is_shown else (),
        "waits_for": intent.waits_for if is_shown else (),
    }


def _ranking_view(ranking: TextRanking, declared: frozenset[str]) -> Document:
    places = [place for place, rank in enumerate(ranking.capabilities, 1) if rank.capability in declared]
    return {
        "text": ranking.text,
        "rank": places[0] if places else None,
        "in_scope": ranking.in_scope,
        "scope_score": ranking.scope_score,
        "scope_floor": ranking.scope_floor,
        "calibration": ranking.calibration,
        "capabilities": [
            {
                "capability": rank.capability,
                "score": rank.score,
                "similarity": rank.similarity,
                "cosine": rank.cosine,
                "agents": {name: found for name, found in rank.agent_cosines.items() if found > NOT_SEARCHED},
                "declared": rank.capability in declared,
            }
            for rank in ranking.capabilities
        ],
    }


def dead_view(entry: DeadEntry) -> Document:
    """A dead letter in a list."""
    frame = entry.frame
    known = {
        name: getattr(entry, name)
        for name in ("dead_id", "error_code", "ended_ms", "caller", "request_id", "capability", "agent_id")
    }
    return {
        **known,
        "cause": cause_of(entry.error_code),
        "status": entry.status,
        "attempts": entry.attempts,
        "retries": entry.retries,
        "retried_as": entry.retried_as,
        "source": frame.source if frame else None,
        "size_bytes": frame.size_bytes if frame else None,
    }


def dead_letter_view(entry: DeadEntry, state: RequestState | None) -> Document:
    """One dead letter with everything known of it."""
    task = next((t for t in state.tasks if t.task_id == entry.dead_id), None) if state else None
    attempts = state.attempts_of(task.task_id) if state and task else ()
    return {
        **dead_view(entry),
        "text": state.intents[task.position].text if state and task else None,
        "inputs": dict(task.inputs) if task else {},
        "tried": [_tried(attempt) for attempt in attempts],
        "body": entry.frame.body if entry.frame else None,
    }


def _tried(attempt: Attempt) -> Document:
    names = ("number", "agent_id", "status", "error_code", "published_ms", "started_ms", "finished_ms")
    return {name: getattr(attempt, name) for name in names}
