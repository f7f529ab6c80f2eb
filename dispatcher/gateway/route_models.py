"""What route queries answer: candidates, and how to call them directly."""

from dispatcher.gateway.models import Reply


class DirectReply(Reply):
    """Where the agent may be called while no dispatcher answers; `ticket` goes with it as `Direct-Ticket`.

    An agent in touch with its dispatcher accepts it for `expires_in_s` seconds.
    """

    endpoint: str
    ticket: str
    expires_in_s: float


class RouteCandidateReply(Reply):
    """An agent as it is now. `throttled`: it has no room, another task would wait.

    `p95_ms` is told by the agent, null where it told none; `timeout_ms` is for the whole task.
    `direct` is null where the agent does not allow it.
    """

    agent_id: str
    score: float
    p95_ms: float | None
    running: int
    capacity: int
    throttled: bool
    idempotent: bool
    timeout_ms: int
    direct: DirectReply | None


class RouteListReply(Reply):
    """Who would take work of the capability now, best first; `caller` is whom the tickets are for.

    What is told of loads is old after `expires_in_s`. While all are `throttled`, ask again in
    `retry_after_ms`. `inputs` names the fields that the capability takes.
    """

    capability: str
    caller: str
    expires_in_s: float
    retry_after_ms: int
    throttled: bool
    inputs: list[str]
    candidates: list[RouteCandidateReply]
