"""From what a caller calls a capability to its name (pure; requirements B4, B5)."""

import unicodedata
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from dispatcher.dispatch.lifecycle.request import ChatMessage, Match
from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRules:
    """`synonyms` are by alias in its `plain` form; environments in `semantic_off` have no semantic match."""

    synonyms: Mapping[str, Capability] = field(default_factory=dict)
    semantic: bool = True
    semantic_off: frozenset[str] = frozenset()


def plain(alias: str) -> str:
    """An alias as it is compared: case, width and the number of spaces do not count."""
    return " ".join(unicodedata.normalize("NFKC", alias).casefold().split())


def matched(message: ChatMessage, rules: MatchRules, known: Container[Capability]) -> ChatMessage:
    """The message with the capability that a loose match finds; a semantic one is left to its ranking.

    Raises RequestError: `semantic_match_off` where that is switched off, `unknown_capability` where the
    name is neither a capability nor an alias of one.
    """
    if message.wanted is None:
        return message
    if message.match is Match.SEMANTIC:
        if not rules.semantic or message.environment in rules.semantic_off:
            raise RequestError("semantic match is switched off here", code="semantic_match_off")
        return message
    named = Capability(message.wanted)
    found = named if named in known else rules.synonyms.get(plain(message.wanted))
    if found is None:
        raise RequestError("no agent declares this capability", code="unknown_capability")
    return replace(message, capability=found, wanted=None)
