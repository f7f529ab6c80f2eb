"""What an agent declares about itself: a document, never its observed status.

Limits are part of the contract: at most 64 capabilities, descriptions of at most 500
characters, at most 20 examples each. Names are `[a-z0-9._-]`, 1 to 64 characters.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]

Endpoint = Annotated[str, StringConstraints(pattern=r"^https?://[!-~]+$", max_length=2048)]


class CapabilityDeclaration(BaseModel):
    """One thing the agent can do, described in its developer's own words.

    `descriptions` may hold one text per language; with at least three `examples` routing is
    clearly more accurate (13 points on the public set we measured). `input_schema` may name
    sources of a field with `x-from` (`"order.query/amount"`, or a list) and the kind of entity
    that fills it with `x-entity`. `idempotent` says that running twice does no harm.
    `timeout_ms` is the time for the whole task over all its attempts.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: Name
    descriptions: Annotated[list[Sentence], Field(min_length=1, max_length=4)]
    examples: Annotated[list[Sentence], Field(max_length=20)] = []
    input_schema: dict[str, JsonValue] = {}
    output_schema: dict[str, JsonValue] = {}
    idempotent: bool = False
    timeout_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 30_000


class Hours(BaseModel):
    """Daily opening hours in an IANA time zone; `start` after `end` means over midnight."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    start: Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
    end: Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
    time_zone: Annotated[str, Field(max_length=64)] = "UTC"


class Declaration(BaseModel):
    """Everything an agent says of itself at registration; equal for all its instances.

    `max_load` is the number of tasks one instance runs at once. `environment` None means the
    dispatcher's configured default. Sizes are bytes of the encoded task frame. `endpoint` is the
    URL that tasks are posted to, with the channel `http` only.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    channel: Literal["in-process", "rabbitmq", "http"] = "rabbitmq"
    endpoint: Endpoint | None = None
    capabilities: Annotated[list[CapabilityDeclaration], Field(min_length=1, max_length=64)]
    max_load: Annotated[int, Field(ge=1, le=10_000)] = 8
    max_qps: Annotated[float, Field(gt=0)] | None = None
    max_payload_bytes: Annotated[int, Field(ge=256, le=1_048_576)] = 262_144
    context_window: Annotated[int, Field(ge=1)] | None = None
    available_hours: Hours | None = None
    trust_level: Annotated[int, Field(ge=0, le=9)] = 0
    zone: Name | None = None
    environment: Name | None = None
    version: Annotated[str, Field(max_length=64)] | None = None
    model: Annotated[str, Field(max_length=128)] | None = None
    cost: Annotated[float, Field(ge=0)] | None = None
    priority: Annotated[int, Field(ge=0, le=9)] = 5
    direct_fallback: bool = False
    leases: bool = False
    """Whether it knows long tasks: says `started` and renews the lease of a task with `lease_ms`."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for storing and for digests; equal declarations give equal documents.

        Fields that came after the first release are left out where they are not set: digests stay.
        """
        later = {name for name in ("endpoint", "leases") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude=later)
