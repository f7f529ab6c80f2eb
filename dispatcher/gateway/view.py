"""How requests, plans, decisions and trials look from outside; pure.

A caller never learns of capabilities that it was not granted: to it they do not exist.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

import orjson

from dispatcher.dispatch.part import parts
from dispatcher.dispatch.request import DecisionRecord, RequestState
from dispatcher.gateway.parts import Explanation, TextRanking
from dispatcher.gateway.reply import encode
from dispatcher.identifiers import Capability
from dispatcher.intents.plan import Intent
from dispatcher.registry.access import Identity
from dispatcher.registry.description import AgentDescription
from dispatcher.routing.decision import Outcome, Rejection

Document = dict[str, object]

_HIDDEN: Document = {
    "outcome": Outcome.OUT_OF_SCOPE,
    "reason": Outcome.OUT_OF_SCOPE,
    "capability": None,
    "agent_id": None,
    "similarity": None,
    "score": None,
    "scope_score": None,
}


def request_view(state: RequestState) -> Document:
    """A request with its parts."""
    request = state.request
    return {
        "request_id": request.request_id,
        "status": request.status,
        "answer": request.answer,
        "parts": parts(state),
    }


def records_view(records: Iterable[DecisionRecord], identity: Identity) -> list[Document]:
    """Stored decisions as this identity may see them."""
    return [_decision_view(r.position, r.number, orjson.loads(r.document), identity) for r in records]


def explanation_view(explanation: Explanation, identity: Identity) -> Document:
    """A plan with its decisions, as this identity may see them."""
    decisions = [orjson.loads(encode(decision)) for decision in explanation.decisions]
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
    view: Document = {"position": position, "number": number, **decision}
    if identity.grants is None:
        return view
    if not _shows(view.get("capability"), identity):
        view |= _HIDDEN
    view["candidates"] = [
        candidate
        for candidate in _mappings(view.get("candidates"))
        if _shows(candidate["capability"], identity)
    ]
    left_out = view.get("left_out")
    if isinstance(left_out, Mapping):
        view["left_out"] = {k: v for k, v in left_out.items() if k != Rejection.NOT_GRANTED}
    return view


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
                "agents": rank.agent_cosines,
                "declared": rank.capability in declared,
            }
            for rank in ranking.capabilities
        ],
    }
