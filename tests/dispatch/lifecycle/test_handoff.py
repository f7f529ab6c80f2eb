"""What people are told of a part, and what its caller sees."""

import pytest

from dispatcher.dispatch.lifecycle.accept import first_step
from dispatcher.dispatch.lifecycle.handoff import NEAR, Handoff, handoff_frame, handoff_view
from dispatcher.dispatch.lifecycle.part import parts
from dispatcher.dispatch.lifecycle.request import DecisionRecord, RequestState, RequestStatus, TaskStatus
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.identifiers import AgentId, Capability, RequestId
from dispatcher.intents.plan import Entity, EntityKind
from dispatcher.protocol.handoff import HandoffFrame
from dispatcher.records import replace
from dispatcher.routing.decision import Candidate, Decision, Outcome, Rejection
from dispatcher.routing.record import decision_document
from tests.dispatch.builders import NOW, Agents, accepted, arrival, assigner, decision, intent, task_of

NUMBER = Entity(kind=EntityKind.ORDER_NUMBER, value="A1", text="A1", start=0, end=2)


@pytest.fixture
def state() -> RequestState:
    nobody = assigner(Agents(outcome=Outcome.HANDED_OFF))
    return accepted(intent(0, None, entities=(NUMBER,)), by=nobody)


def candidate(capability: str, similarity: float) -> Candidate:
    return Candidate(
        agent_id=AgentId("a"),
        capability=Capability(capability),
        cosine=similarity,
        similarity=similarity,
        success=0.8,
        headroom=1.0,
        score=0.5,
        rejection=Rejection.BELOW_SCOPE_FLOOR,
    )


def decided(position: int, made: Decision | str) -> DecisionRecord:
    document = made if isinstance(made, str) else decision_document(made)
    return DecisionRecord(request_id=RequestId("q1"), position=position, number=1, document=document)


def handoff(**changes: object) -> Handoff:
    known: dict[str, object] = {
        "task_id": "q1.0",
        "request_id": "q1",
        "caller": "shop",
        "text": "wish 0",
        "language": "en",
        "environment": "production",
        "handed_ms": NOW,
    }
    return Handoff(**known | changes)  # type: ignore[arg-type]


def test_the_part_ends_at_once_and_the_person_is_told_in_the_same_step() -> None:
    nobody = assigner(Agents(outcome=Outcome.HANDED_OFF))

    step = first_step(arrival(intent(0, None)), NOW, nobody)

    assert step.state.request.status is RequestStatus.FALLBACK
    assert task_of(step.state).status is TaskStatus.HANDED_OFF
    assert [(one.request_id, one.task_id, one.described) for one in step.handoffs] == [("q1", "q1.0", None)]
    assert "wish 0" in (step.state.request.answer or "")
    assert Draft(step.state, NOW).step().handoffs == ()


def test_what_the_caller_described_is_kept_for_the_person() -> None:
    nobody = Agents(outcome=Outcome.HANDED_OFF)
    nobody.described = "cancel an order"

    (record,) = first_step(arrival(intent(0, None)), NOW, assigner(nobody)).handoffs

    assert record.described == "cancel an order"


def test_the_frame_tells_what_was_asked_why_and_what_came_near(state: RequestState) -> None:
    near = [candidate(f"c{number}", number / 10) for number in range(NEAR + 1)]
    refused = replace(
        decision(None, Outcome.HANDED_OFF),
        reason="below_scope_floor",
        candidates=(*near, candidate("c5", 0.1)),
    )

    frame = handoff_frame(state, handoff(described="cancel it"), [decided(1, "{}"), decided(0, refused)])

    assert (frame.task_id, frame.caller, frame.text, frame.message) == ("q1.0", "shop", "wish 0", "a message")
    assert (frame.described, frame.reason) == ("cancel it", "below_scope_floor")
    assert frame.entities[0]["value"] == "A1"
    assert [one.capability for one in frame.near] == ["c5", "c4", "c3", "c2", "c1"]
    assert frame.near[0].similarity == 0.5
    assert HandoffFrame.model_validate_json(frame.model_dump_json()) == frame


def test_a_pruned_decision_is_missing_in_the_frame(state: RequestState) -> None:
    frame = handoff_frame(state, handoff(), ())

    assert (frame.described, frame.reason, frame.near) == (None, "handed_off", [])


def test_the_caller_sees_it_open_until_it_is_answered(state: RequestState) -> None:
    answered = handoff(answer="yes", answered_by="root", answered_ms=7)
    waiting = {"state": "open", "answer": None, "answered_ms": None}

    assert handoff_view(None) == handoff_view(handoff()) == waiting
    assert (handoff().state, answered.state) == ("open", "answered")
    assert parts(state)[0]["handoff"] == waiting
    (part,) = parts(state, {answered.task_id: answered})
    assert part["handoff"] == {"state": "answered", "answer": "yes", "answered_ms": 7}
    assert (part["status"], part["capability"], part["options"]) == (TaskStatus.HANDED_OFF, None, ())


def test_parts_that_agents_do_have_no_handoff() -> None:
    assert parts(accepted())[0]["handoff"] is None
