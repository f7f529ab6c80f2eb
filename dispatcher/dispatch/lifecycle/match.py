"""From what a caller calls a capability to its name (pure; requirements B4, B5)."""

import unicodedata
from collections.abc import Callable, Container, Mapping

from dispatcher.dispatch.lifecycle.request import ChatMessage, Match
from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.records import Struct, field, replace


class MatchRules(Struct, frozen=True, kw_only=True):
    """`synonyms` are by alias in its `plain` form; environments in `semantic_off` have no semantic match."""

    synonyms: Mapping[str, Capability] = field(default_factory=dict)
    semantic: bool = False
    semantic_off: frozenset[str] = frozenset()


def plain(alias: str) -> str:
    """An alias as it is compared: case, width and the number of spaces do not count."""
    return " ".join(unicodedata.normalize("NFKC", alias).casefold().split())


def matched(
    message: ChatMessage,
    rules: MatchRules,
    known: Container[Capability],
    allows: Callable[[Capability], bool],
) -> ChatMessage:
    """The message with the capability that the caller may have by that name, or by an alias of it.

    A description is left to its ranking. Raises RequestError: `semantic_match_off` where that is switched
    off, `capability_not_granted` for whatever the caller may not use, be it there or not, and
    `unknown_capability` for what it may use and nobody declares.
    """
    if message.wanted is not None:
        if message.match is Match.SEMANTIC:
            if not rules.semantic or message.environment in rules.semantic_off:
                raise RequestError("semantic match is switched off here", code="semantic_match_off")
            return message
        message = replace(message, capability=_found(message.wanted, rules, known), wanted=None)
    if message.capability is None:
        return message
    if not allows(message.capability):
        raise RequestError("this capability is not granted to you", code="capability_not_granted")
    if message.capability not in known:
        raise RequestError("no agent declares this capability", code="unknown_capability")
    return message


def _found(wanted: str, rules: MatchRules, known: Container[Capability]) -> Capability:
    """A name goes before an alias; what is neither stays as it is, the name of nothing."""
    named = Capability(wanted)
    return named if named in known else rules.synonyms.get(plain(wanted), named)
