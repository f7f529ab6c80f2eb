"""What an instance works with, and the rules it works by."""

import random
from dataclasses import dataclass, field

from dispatcher.backoff import BackoffRules
from dispatcher.clock import Clock
from dispatcher.protocol.link import Link
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.fence import Fence
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.inbox import Inbox


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRules:
    """Seconds: a pause before a delivery is given back, and between two looks at a run elsewhere."""

    pause_s: float = 1.0
    look_s: float = 1.0
    publish: BackoffRules = field(default_factory=BackoffRules)
    """Between two tries to publish a result."""
    claim_margin_s: float = 5.0
    """A claim holds for the task's budget and this much more; past the budget it is held again every half."""
    answer_share: float = 0.05
    answer_most_s: float = 0.5
    """Kept of the budget, as a share and at most, to tell a `timeout` before the attempt lapses."""
    renewals: int = 3
    """How often a long task's lease is renewed within `lease_ms`."""
    leftovers_s: float = 30.0
    """Between two looks for results that gone instances stored and did not tell."""

    def kept_for_answer(self, budget_s: float) -> float:
        """The part of a budget that the handler doesn't get, in seconds."""
        return min(budget_s * self.answer_share, self.answer_most_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an instance works with; `owner` is its id."""

    agent: Agent
    owner: str
    link: Link
    inbox: Inbox
    handlers: HandlerThread
    clock: Clock
    rules: IntakeRules = field(default_factory=IntakeRules)
    fence: Fence = field(default_factory=Fence)
    chance: random.Random = field(default_factory=random.Random)  # noqa: S311 - keeps no secret
    """Spreads the tries of many instances."""
