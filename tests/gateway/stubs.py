"""Hand-written parts behind the gateway, and a client that holds every response to the document."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from fastapi.testclient import TestClient

from dispatcher import records
from dispatcher.dispatch.lifecycle.request import (
    ChatMessage,
    DecisionRecord,
    Request,
    RequestState,
    RequestStatus,
    Task,
    TaskStatus,
)
from dispatcher.errors import DispatcherError, RequestError
from dispatcher.gateway.app import create_app
from dispatcher.gateway.parts import GatewayParts, GatewayRules
from dispatcher.identifiers import (
    AgentId,
    CallerId,
    Capability,
    ReplicaId,
    RequestId,
    TaskId,
    new_id,
)
from dispatcher.intents.plan import Entity, EntityKind, Intent, Plan
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.link import Settlement
from dispatcher.registry.access import Identity, Role
from dispatcher.routing.decision import Candidate, Decision, Outcome, Rejection, Weights
from dispatcher.routing.index import NOT_SEARCHED
from dispatcher.routing.record import decision_document
from tests.gateway.documented import check_documented, check_problem
from tests.gateway.stub_calibrations import StubCalibrations
from tests.gateway.stub_dead import StubDeadLetters
from tests.gateway.stub_judge import StubJudge
from tests.gateway.stub_people import StubPeople
from tests.gateway.stub_ranking import CapabilityRank, Ranking
from tests.gateway.stub_registrar import StubRegistrar
from tests.gateway.stub_route import StubRoutes
from tests.gateway.stub_watcher import StubWatcher

ORDER = Capability("order.query")
SECRET = Capability("secret.thing")
ALICE, BOB, ADMIN, ORDER_AGENT = "ard_alice", "ard_bob", "ard_admin", "ard_order"
IDENTITIES = {
    ALICE: Identity(role=Role.CALLER, subject="alice", grants=frozenset({ORDER})),
    BOB: Identity(role=Role.CALLER, subject="bob", grants=frozenset({ORDER})),
    ADMIN: Identity(role=Role.ADMIN, subject="root", grants=None),
    ORDER_AGENT: Identity(role=Role.AGENT, subject="order"),
}


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """What became of a message."""

    request_id: RequestId
    replayed: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What would become of one."""

    plan: Plan
    decisions: tuple[Decision, ...]


class Access:
    """Four known keys; `failure` is raised instead of any answer."""

    def __init__(self) -> None:
        self.failure: DispatcherError | None = None
        self.anonymous: Identity | None = None

    async def authenticate(self, bearer: str) -> Identity | None:
        if self.failure is not None:
            raise self.failure
        return IDENTITIES.get(bearer) or self.anonymous


def request_state(request_id: str, caller: str, status: RequestStatus = RequestStatus.OPEN) -> RequestState:
    """A request with one task, open or completed."""
    is_open = status is RequestStatus.OPEN
    request = Request(
        request_id=RequestId(request_id),
        caller=CallerId(caller),
        replica=ReplicaId("r1"),
        message="where is my order",
        language="en",
        environment="production",
        session_id=None,
        user_id=None,
        context={},
        idempotency_key=None,
        body_digest="",
        status=status,
        answer=None if is_open else "It is on its way.",
        created_ms=0,
        deadline_ms=60_000,
    )
    intent = Intent(position=0, text="where is my order", capability=ORDER, confidence=0.9)
    task = Task(
        task_id=TaskId("t1"),
        request_id=request.request_id,
        position=0,
        capability=ORDER,
        status=TaskStatus.OPEN if is_open else TaskStatus.COMPLETED,
        idempotent=True,
        timeout_ms=30_000,
        similarity=0.9,
        agent_id=AgentId("order"),
        score=0.8,
        opened_ms=0,
        finished_ms=None if is_open else 12,
        result_text=None if is_open else "It is on its way.",
        result_data=None if is_open else {"amount": 12.5},
    )
    return RequestState(request=request, intents=(intent,), tasks=(task,), attempts=())


def candidate(capability: Capability, rejection: Rejection | None) -> Candidate:
    """A candidate of the agent named like the first part of the capability."""
    return Candidate(
        agent_id=AgentId(capability.split(".")[0]),
        capability=capability,
        cosine=0.7,
        similarity=0.9,
        success=0.8,
        headroom=1.0,
        score=0.89,
        rejection=rejection,
    )


def decision(capability: Capability = ORDER) -> Decision:
    """A decision for one capability, with a candidate of another beside it."""
    other = SECRET if capability == ORDER else ORDER
    return Decision(
        text="where is my order",
        outcome=Outcome.SELECTED,
        reason="highest score",
        capability=capability,
        agent_id=AgentId(capability.split(".")[0]),
        similarity=0.9,
        score=0.89,
        scope_score=0.5,
        scope_floor=0.2,
        candidates=(candidate(capability, None), candidate(other, Rejection.OTHER_CAPABILITY)),
        left_out={"other_capability": 3, "not_granted": 1},
        weights=Weights(),
        encoder_id="hashing",
        registry_version=1,
        calibration="self",
    )


@dataclass
class StubDispatcher:
    """Accepts everything, ends it at once when `ends`, and keeps it by caller and key."""

    ends: bool = True
    failure: Exception | None = None
    wait_failure: Exception | None = None
    winner: Capability = ORDER
    submitted: list[ChatMessage] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    expected: list[bool] = field(default_factory=list)
    states: dict[str, RequestState] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    records: tuple[DecisionRecord, ...] = ()

    async def submit(self, message: ChatMessage, identity: Identity, *, waits: bool = True) -> Submitted:
        self.expected.append(waits)
        if self.failure is not None:
            raise self.failure
        self.submitted.append(message)
        request_id = new_id()
        if message.idempotency_key is not None:
            mine = (identity.subject, message.idempotency_key)
            known, digest = self.keys.setdefault(mine, (request_id, message.body_digest))
            if digest != message.body_digest:
                raise RequestError("key used with another body", code="idempotency_key_reused")
            if known != request_id:
                return Submitted(request_id=RequestId(known), replayed=True)
        status = RequestStatus.COMPLETED if self.ends else RequestStatus.OPEN
        self.states[request_id] = request_state(request_id, identity.subject, status)
        return Submitted(request_id=RequestId(request_id), replayed=False)

    async def wait(self, request_id: RequestId, seconds: float) -> RequestState:
        self.waits.append(seconds)
        if self.wait_failure is not None:
            raise self.wait_failure
        return self.states[request_id]

    async def read(self, request_id: RequestId, identity: Identity) -> RequestState | None:
        if self.failure is not None:
            raise self.failure
        state = self.states.get(request_id)
        mine = state is not None and state.request.caller == identity.caller_id
        return state if mine or identity.role is Role.ADMIN else None

    async def cancel(self, request_id: RequestId, identity: Identity) -> RequestState | None:
        state = await self.read(request_id, identity)
        if state is not None and state.request.status is RequestStatus.OPEN:
            request = records.replace(state.request, status=RequestStatus.CANCELLED, answer="Cancelled.")
            task = records.replace(state.tasks[0], status=TaskStatus.CANCELLED, error_code="cancelled")
            self.states[request_id] = records.replace(state, request=request, tasks=(task,))
        return None if state is None else self.states[request_id]

    async def decisions(self, request_id: RequestId, identity: Identity) -> tuple[DecisionRecord, ...] | None:
        return None if await self.read(request_id, identity) is None else self.records

    async def explain(self, message: ChatMessage, identity: Identity) -> Explanation:
        if self.failure is not None:
            raise self.failure
        self.submitted.append(message)
        entity = Entity(kind=EntityKind.ORDER_NUMBER, text="A1", value="A1", start=0, end=2)
        intent = Intent(
            position=0, text=message.message, capability=self.winner, confidence=0.9, entities=(entity,)
        )
        return Explanation(plan=Plan(intents=(intent,), language="en"), decisions=(decision(self.winner),))


@dataclass
class Api:
    """The application over stub parts. Each response is held to the published document."""

    dispatcher: StubDispatcher = field(default_factory=StubDispatcher)
    registrar: StubRegistrar = field(default_factory=StubRegistrar)
    access: Access = field(default_factory=Access)
    readiness: dict[str, str | None] = field(default_factory=lambda: {"ledger": None, "broker": None})
    is_stopping: bool = False
    tried: list[tuple[AgentId, Declaration, Sequence[str]]] = field(default_factory=list)
    routes: StubRoutes = field(default_factory=StubRoutes)

    def __post_init__(self) -> None:
        rules = GatewayRules(default_environment="production")
        self.watcher = StubWatcher(self.dispatcher.states)
        self.calibrations = StubCalibrations()
        self.dead = StubDeadLetters(request_state(new_id(), "alice", RequestStatus.COMPLETED))
        self.people = StubPeople()
        self.callbacks: list[tuple[TaskId, bytes, AgentId | None]] = []
        self.settlement: Settlement | RequestError = Settlement.ACK
        self.judge = StubJudge()
        self.parts = GatewayParts(
            dispatcher=self.dispatcher,
            watcher=self.watcher,
            registrar=self.registrar,
            access=self.access,
            trial=self._trial,
            ask_route=self.routes.ask,
            agent_keys=self.routes.keys,
            accept_result=self._accept_result,
            dead=self.dead,
            calibrations=self.calibrations,
            judge=self.judge.take,
            people=self.people,
            readiness=lambda: self.readiness,
            rules=rules,
            stopping=lambda: self.is_stopping,
        )
        self.open()

    def open(self, **rules):
        """Build the application again with other rules."""
        self.parts = replace(self.parts, rules=replace(self.parts.rules, **rules))
        self.app = create_app(self.parts)
        self.client = TestClient(self.app)
        return self

    async def _accept_result(self, task_id: TaskId, body: bytes, sender: AgentId | None) -> Settlement:
        self.callbacks.append((task_id, body, sender))
        if isinstance(self.settlement, RequestError):
            raise self.settlement
        return self.settlement

    async def _trial(self, agent_id, declaration, texts):
        self.tried.append((agent_id, declaration, texts))
        rank = CapabilityRank(
            capability=ORDER,
            agent_cosines={AgentId("order"): 0.7, AgentId("far"): NOT_SEARCHED},
            cosine=0.7,
            similarity=0.9,
            score=0.75,
        )
        return [Ranking(text=text, capabilities=[rank]) for text in texts]

    def call(self, method, path, *, key=ALICE, headers=None, **rest):
        """Send one request and hold the response to the document; no key when None."""
        sent = dict(headers or {})
        if key is not None:
            sent.setdefault("Authorization", f"Bearer {key}")
        response = self.client.request(method, path, headers=sent, **rest)
        self._check(method, path.partition("?")[0], response)
        return response

    def post(self, path, body=None, **rest):
        """POST a JSON body."""
        return self.call("POST", path, json=body, **rest)

    def send(self, raw, *, path="/v1/chat", content_type="application/json", **rest):
        """POST bytes as they are."""
        headers = {"Content-Type": content_type, **rest.pop("headers", {})}
        return self.call("POST", path, content=raw, headers=headers, **rest)

    def _check(self, method, path, response):
        check_problem(response)
        if self.parts.rules.docs:
            check_documented(published(), method, path, response)


@cache
def published():
    """The OpenAPI document; the same for every application."""
    return Api().app.openapi()


def record(position=0, number=1, capability=ORDER):
    """A stored decision."""
    document = decision_document(decision(capability))
    return DecisionRecord(request_id=RequestId("r1"), position=position, number=number, document=document)


def register_body(**changes):
    """What the agent `order` sends to register."""
    return {
        "agent_id": "order",
        "instance_name": "host-1",
        "instance_id": "i1",
        "inbox": "sqlite",
        "declaration": {"capabilities": [{"name": "order.query", "descriptions": ["Finds orders."]}]},
        **changes,
    }
