"""A task as a caller itself gives it to an agent (pure but for fresh identifiers)."""

import secrets
from dataclasses import dataclass, field

from dispatcher.identifiers import CallerId, Capability, callers_key, new_id
from dispatcher.protocol.frames import TaskContext, TaskFrame, TaskPayload
from dispatcher.sdk.known_routes import KnownAgent, Route, Wish
from dispatcher.sdk.request_answer import ChatOptions, RequestAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A message that no gateway answered.

    `key` is the idempotency key it was posted with. `surely` says that no gateway can have accepted
    anything under that key.
    """

    message: str
    options: ChatOptions
    key: str
    surely: bool
    wait_s: float


@dataclass(slots=True, kw_only=True)
class Tries:
    """What the calls for one message came to, so far."""

    until: float
    count: int = 0
    is_unsure: bool = False
    failed: RequestAnswer | None = None
    request_id: str = field(default_factory=new_id)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))


def wish_of(options: ChatOptions) -> Wish | None:
    """What routes for a message with these options are remembered under; None without a capability's name."""
    capability = options.get("capability")
    if not capability or options.get("match", "strict") != "strict":
        return None
    return Wish(capability=capability, environment=options.get("environment"))


def task_of(lost: Lost, route: Route, agent: KnownAgent, tries: Tries, budget_ms: int) -> TaskFrame:
    """The frame of one call: its fields are those of the context that the capability takes by name."""
    options = lost.options
    context = options.get("context", {})
    caller, capability = CallerId(route.caller), Capability(route.capability)
    return TaskFrame(
        request_id=tries.request_id,
        task_id=f"{tries.request_id}.0",
        attempt=tries.count,
        idempotency_key=callers_key(caller, capability, lost.key, lost.message),
        token=tries.token,
        agent_id=agent.agent_id,
        capability=capability,
        payload=TaskPayload(
            text=lost.message, input={name: context[name] for name in route.inputs if name in context}
        ),
        context=TaskContext(
            caller=caller,
            session_id=options.get("session_id"),
            user_id=options.get("user_id"),
            language=options.get("language"),
            environment=options.get("environment"),
            data=context,
        ),
        budget_ms=budget_ms,
        start_within_ms=budget_ms,
        reply_to="",
    )
