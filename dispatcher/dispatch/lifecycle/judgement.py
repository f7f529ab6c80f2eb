"""What people say about how an intent was routed."""

from enum import StrEnum

from dispatcher.identifiers import CallerId, Capability, RequestId
from dispatcher.records import Struct


class Verdict(StrEnum):
    """Whether the right one was asked."""

    RIGHT = "right"
    WRONG_AGENT = "wrong_agent"
    """The right capability, but another of its agents should have had it."""
    WRONG_CAPABILITY = "wrong_capability"
    OUT_OF_SCOPE = "out_of_scope"
    """Nobody here is for this."""


class Judgement(Struct, frozen=True, kw_only=True):
    """One intent's judgement; `capability` is the one that would have been right, None where nobody said.

    A later judgement of the same intent takes the place of an earlier one.
    """

    position: int
    verdict: Verdict
    capability: Capability | None = None
    comment: str = ""


class Given(Struct, frozen=True, kw_only=True):
    """Judgements of one request with who gave them; `caller` is the one whose request it is."""

    request_id: RequestId
    caller: CallerId
    given_by: str
    judgements: tuple[Judgement, ...]
