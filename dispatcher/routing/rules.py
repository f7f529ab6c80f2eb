"""The settings of routing: weights, floors, shares and limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.routing.decision import Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class ClarifyRules:
    """How near the second capability must come for the person to be asked; 0 never asks.

    `own` has the margins of single capabilities. All in units of the median lead.
    """

    margin: float = 0.0
    own: Mapping[Capability, float] = field(default_factory=dict)

    @property
    def is_on(self) -> bool:
        """Whether anything is ever asked."""
        return self.margin > 0 or any(self.own.values())

    def margin_of(self, capability: Capability) -> float:
        """The capability's own margin, else that of all."""
        return self.own.get(capability, self.margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingRules:
    """How rankings and decisions are made; raises ConfigurationError where a value can't be used.

    `similarity_floor` and `composite_floor` are the published 0.35 (requirement C1), on calibrated
    similarity and on the composite. `margin` admits capabilities whose score lies at most so much
    below the winner's, in units of the median lead; 0 admits the winner only. `saturation` is the
    load from which an agent is left out while another of its group is below (requirement C4).
    """

    weights: Weights = field(default_factory=Weights)
    similarity_floor: float = 0.35
    composite_floor: float = 0.35
    margin: float = 0.0
    clarify: ClarifyRules = field(default_factory=ClarifyRules)
    lexical_share: float = 0.2
    """Of the best lexical match, where every capability has examples; in units of the median lead."""
    lexical_share_bare: float = 0.5
    """The same where none has: a one-line description's vector says less, and its words more."""
    saturation: float = 0.9
    approval_margin: float = 0.1
    """A new curve that refuses a larger share more of the registered examples waits for approval."""
    neighbours_kept: int = 20
    """Candidates of other capabilities in a decision."""
    group_kept: int = 64
    """Candidates of the winning group in a decision; the rest is counted by reason."""
    search_limit: int = 4096
    """Agents and capabilities per text whose cosine is looked at; more are left to the index."""
    retry_after_s: int = 5
    """What an unavailable part tells its caller, in seconds: one heartbeat."""

    def __post_init__(self) -> None:
        weights = (self.weights.similarity, self.weights.success, self.weights.headroom)
        if min(weights) < 0 or abs(sum(weights) - 1) > 1e-6:
            raise ConfigurationError("the weights of similarity, success and headroom must sum to 1")
        shares = ("similarity_floor", "composite_floor", "lexical_share", "saturation", "approval_margin")
        for name in ("margin", "lexical_share_bare", *shares):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigurationError(f"{name} must lie between 0 and 1")
        for name in ("neighbours_kept", "group_kept", "search_limit", "retry_after_s"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1")
