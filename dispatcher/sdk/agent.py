"""An agent: its name, its limits and a handler for each capability.

    agent = Agent("clock")

    @agent.handler("time.tell", description="Tells the time.", examples=["what time is it"])
    def tell(task: TaskView) -> str:
        return "It is noon."

`dispatcher.sdk.run(agent)` puts it to work.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypedDict, TypeVar, Unpack

from pydantic import TypeAdapter, ValidationError

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration, Hours, Name
from dispatcher.sdk.handler import Handler, HandlerFunction, read_signature

FunctionT = TypeVar("FunctionT", bound=HandlerFunction)
ChannelKind = Literal["in-process", "rabbitmq"]

_NAMES = "names are [a-z0-9._-], 1 to 64 characters, the first a letter or digit"
_RULES = {
    "name": _NAMES,
    "zone": f"zone: {_NAMES}",
    "environment": f"environment: {_NAMES}",
    "timeout_ms": "timeout_s: from 0.1 to 3600 seconds",
}
"""In the author's words, by field of the declaration; the other rules speak for themselves."""


class Limits(TypedDict, total=False):
    """The rest of what an agent may declare; see `protocol.declaration.Declaration`."""

    max_qps: float
    max_payload_bytes: int
    context_window: int
    available_hours: Hours
    trust_level: int
    zone: str
    model: str
    cost: float
    priority: int
    direct_fallback: bool


class HandlerOptions(TypedDict, total=False):
    """`idempotent`: running twice does no harm (default False). `timeout_s`: the whole task, 0.1 to 3600."""

    idempotent: bool
    timeout_s: float


class Agent:
    """Declares what it can do; `dispatcher.sdk.run` or a `Runtime` connects it.

    `max_load` is the number of tasks one instance runs at once.
    """

    def __init__(
        self,
        agent_id: str,
        *,
        max_load: int = 8,
        environment: str | None = None,
        version: str | None = None,
        **limits: Unpack[Limits],
    ) -> None:
        self.agent_id = AgentId(checked_name(agent_id, "agent id"))
        self.max_load = max_load
        self._fields = {"environment": environment, "version": version, **limits}
        self._handlers: dict[str, Handler] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by capability; read only."""
        return MappingProxyType(self._handlers)

    def handler(
        self,
        capability: str,
        *,
        description: str | Sequence[str],
        examples: Sequence[str] = (),
        **options: Unpack[HandlerOptions],
    ) -> Callable[[FunctionT], FunctionT]:
        """Register the decorated function for a capability.

        `description` may be one text per language. The function takes a pydantic model, a
        TaskView, both or neither, and returns a `Reply`, a model, a `str`, `NeedsInput` or
        `BusinessError`. Raises `ConfigurationError` for annotations it can't use.
        """
        descriptions = (description,) if isinstance(description, str) else tuple(description)

        def register(function: FunctionT) -> FunctionT:
            if capability in self._handlers:
                raise ConfigurationError(f"agent {self.agent_id} declares {capability} twice")
            self._handlers[capability] = Handler(
                agent_id=self.agent_id,
                capability=capability,
                function=function,
                signature=read_signature(function),
                descriptions=descriptions,
                examples=tuple(examples),
                idempotent=options.get("idempotent", False),
                timeout_s=options.get("timeout_s", 30.0),
            )
            return function

        return register

    def declaration(
        self, *, channel: ChannelKind = "rabbitmq", environment: str | None = None
    ) -> Declaration:
        """The document that is registered; `environment` overrides the agent's own.

        Raises `ConfigurationError` that says which rule of the contract is broken, and where.
        """
        given = {name: value for name, value in self._fields.items() if value is not None}
        if environment is not None:
            given["environment"] = environment
        if not self._handlers:
            raise self._refusal("an agent needs at least one handler")
        capabilities = [self._declared(handler) for handler in self._handlers.values()]
        try:
            return Declaration.model_validate(
                {
                    "channel": channel,
                    "capabilities": capabilities,
                    "max_load": self.max_load,
                    "leases": True,
                    **given,
                }
            )
        except ValidationError as error:
            raise self._refusal(_broken_rules(error)) from error

    def _declared(self, handler: Handler) -> CapabilityDeclaration:
        try:
            return handler.declaration()
        except ValidationError as error:
            raise self._refusal(f"capability {handler.capability!r}: {_broken_rules(error)}") from error

    def _refusal(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"agent {self.agent_id} can't be declared: {why}")


def _broken_rules(error: ValidationError) -> str:
    """Every flaw as field and rule, without the value; a capability's own name needs no field."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    rules = ((".".join(map(str, flaw["loc"])), flaw["msg"]) for flaw in found)
    return "; ".join(_RULES.get(field, f"{field}: {rule}") for field, rule in rules)


def checked_name(name: str, what: str) -> str:
    """The name itself; raises `ConfigurationError` when it is not `[a-z0-9._-]`, 1 to 64 characters."""
    try:
        return TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise ConfigurationError(f"the {what} {name!r} must be 1 to 64 of a-z, 0-9, '.', '_', '-'") from error
