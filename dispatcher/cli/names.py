"""Names as an operator types them, held to what the wire and the gateway take."""

import re

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import CallerId, Capability
from dispatcher.registry.access import Role

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NAME_FORM = "1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or digit"
MAX_CALLER_LENGTH = 64


def read_role(text: str) -> Role:
    """The role; raises ConfigurationError for anything else."""
    try:
        return Role(text)
    except ValueError:
        raise ConfigurationError("the role must be one of caller, agent, admin") from None


def read_subject(role: Role, text: str) -> str:
    """Whom a key is for: an agent by its id, anybody else by a name."""
    if role is not Role.AGENT:
        return read_caller(text)
    if not _NAME.fullmatch(text):
        raise ConfigurationError(f"an agent's id is {_NAME_FORM}")
    return text


def read_caller(text: str) -> CallerId:
    """A caller's name: visible characters of any script, no spaces."""
    if not 1 <= len(text) <= MAX_CALLER_LENGTH or not text.isprintable() or " " in text:
        raise ConfigurationError(f"a caller's name is 1 to {MAX_CALLER_LENGTH} visible characters, no spaces")
    return CallerId(text)


def read_capabilities(texts: list[str]) -> frozenset[Capability]:
    """Exact names of capabilities; there are no wildcards."""
    for text in texts:
        if not _NAME.fullmatch(text):
            raise ConfigurationError(f"{text!r} is not a capability's name: {_NAME_FORM}; no wildcards")
    return frozenset(Capability(text) for text in texts)


def read_user(text: str) -> str:
    """A user id as callers send it; one that is not Unicode is nobody's."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigurationError("the user id is not UTF-8") from None
    return text
