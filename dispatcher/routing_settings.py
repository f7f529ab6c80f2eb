"""The group of settings for routing; read in `dispatcher.settings`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from dispatcher.setting_group import Group, Share

CapabilityName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Alias = Annotated[str, Field(min_length=1, max_length=1_000)]


class RoutingSettings(Group):
    """Scoring (requirement C1). The three weights sum to 1; `margin` 0 admits the winning capability only.

    A person is asked which capability is meant where the second best is less than `clarify_margin` behind,
    in units of the median lead; `clarify` has margins of single capabilities, 0 never asks. `fallback` is
    who gets what is out of scope: nobody (`hint`), agents of `fallback_capability` (`agent`), or `people`.

    `synonyms` are aliases of capabilities for callers that match loosely. Callers may describe a
    capability where `semantic` is on: from a similarity of `semantic_bar` on an agent does it, else a person.
    In the environments of `semantic_off` they may not. At most `max_handoffs` parts wait for a person.
    """

    similarity: Share = 0.5
    success: Share = 0.3
    headroom: Share = 0.2
    floor: Share = 0.35
    margin: Share = 0.0
    lexical: Share = 0.2
    index: Literal["faiss", "exact"] = "faiss"
    clarify_margin: Share = 0.0
    clarify: dict[CapabilityName, Share] = Field(default_factory=dict)
    fallback: Literal["hint", "agent", "people"] = "hint"
    fallback_capability: CapabilityName | None = None
    synonyms: dict[Alias, CapabilityName] = Field(default_factory=dict)
    semantic: bool = False
    semantic_bar: Share = 0.95
    semantic_off: tuple[str, ...] = ()
    max_handoffs: Annotated[int, Field(ge=1)] = 10_000

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> "RoutingSettings":
        if abs(self.similarity + self.success + self.headroom - 1) > 1e-9:
            raise ValueError("similarity, success and headroom must sum to 1")
        return self

    @model_validator(mode="after")
    def _says_whose_fallback(self) -> "RoutingSettings":
        if (self.fallback == "agent") != (self.fallback_capability is not None):
            raise ValueError("'fallback: agent' and 'fallback_capability' go together")
        return self
