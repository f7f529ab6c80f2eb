"""What can be said against declarations before anybody asks anything. Pure.

A finding is a hint: it names what made routing wrong elsewhere, and a person decides.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations

from dispatcher.identifiers import Capability
from dispatcher.routing.decision import Decision
from dispatcher.tuning.analysis.overlap import Pair
from dispatcher.tuning.basis.rows import AgentRow, same_text

FEWEST_EXAMPLES = 3
"""What a declaration should have at least; notebooks/05_agent_descriptions shows what each one buys."""
SAME_NAME = 0.85
"""Likeness of two names, in [0, 1], from which one may be the other misspelt."""
BOILERPLATE = 0.5
"""The share of a description's phrases, in [0, 1], that other descriptions hold as well."""
TAKEN = 2
"""Left-out examples that went to the other capability, from which two overlap."""
PHRASE = 3
"""Words, or Chinese and Japanese characters, of a phrase."""

_UNSPACED = r"\u3040-\u30ff\u4e00-\u9fff"
_WORDS = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\w'])+")
_ENDS = " .,;:!?…。，；：！？"
"""What may follow a text without making it another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`kind` is one of the rules of `lint`; `detail` says it in words."""

    capability: Capability
    kind: str
    detail: str


def lint(
    agents: Mapping[Capability, AgentRow], *, replicas: Mapping[Capability, int], pairs: Sequence[Pair] = ()
) -> list[Finding]:
    """All findings, by capability; `replicas` counts the agents of each one, `pairs` as `nearest_pairs`."""
    found = [
        *_too_few(agents),
        *_alone(agents, replicas),
        *_near_names(agents),
        *_repeated(agents),
        *_boilerplate(agents),
        *_overlapping(pairs),
    ]
    return sorted(found, key=lambda one: (one.capability, one.kind, one.detail))


def agent_counts(decisions: Iterable[Decision]) -> dict[Capability, int]:
    """How many agents of each capability decisions have seen."""
    seen = {(one.capability, one.agent_id) for decision in decisions for one in decision.candidates}
    return dict(Counter(capability for capability, _ in seen))


def _too_few(agents: Mapping[Capability, AgentRow]) -> Iterator[Finding]:
    for name, row in agents.items():
        count = len(set(row.examples))
        if count < FEWEST_EXAMPLES:
            yield Finding(capability=name, kind="few_examples", detail=f"{count} of {FEWEST_EXAMPLES}")


def _alone(agents: Iterable[Capability], replicas: Mapping[Capability, int]) -> Iterator[Finding]:
    for name in agents:
        if replicas.get(name, 0) < 2:
            yield Finding(capability=name, kind="one_agent", detail="nobody takes over when it is down")


def _near_names(agents: Iterable[Capability]) -> Iterator[Finding]:
    for one, other in combinations(sorted(agents), 2):
        if _plain(one) == _plain(other) or SequenceMatcher(None, one, other).ratio() >= SAME_NAME:
            yield Finding(capability=one, kind="near_name", detail=f"may be {other}")


def _repeated(agents: Mapping[Capability, AgentRow]) -> Iterator[Finding]:
    holders: defaultdict[str, dict[Capability, str]] = defaultdict(dict)
    for name, row in agents.items():
        for text in (*row.descriptions, *row.examples):
            key = same_text(text)
            holders[key.rstrip(_ENDS) or key].setdefault(name, text)
    for texts in holders.values():
        for one, other in combinations(sorted(texts), 2):
            yield Finding(capability=one, kind="same_text", detail=f"{texts[one]!r} is also {other}'s")


def _boilerplate(agents: Mapping[Capability, AgentRow]) -> Iterator[Finding]:
    phrases = {name: _all_phrases(row.descriptions) for name, row in agents.items()}
    for name, row in agents.items():
        others = set[str]().union(*(own for other, own in phrases.items() if other != name))
        for text in row.descriptions:
            own = _phrases(text, PHRASE)
            common = sum(one in others for one in own) / max(len(own), 1)
            if common >= BOILERPLATE:
                yield Finding(
                    capability=name, kind="boilerplate", detail=f"{common:.0%} of {text!r} is said by others"
                )


def _overlapping(pairs: Iterable[Pair]) -> Iterator[Finding]:
    for pair in pairs:
        if pair.taken >= TAKEN:
            detail = f"with {pair.other}: {pair.taken} texts go to the other, cosine {pair.cosine:.2f}"
            yield Finding(capability=pair.one, kind="overlap", detail=detail)


def _plain(name: str) -> str:
    """The name without separators and plural."""
    return re.sub(r"[._-]", "", name).removesuffix("s")


def _all_phrases(texts: Iterable[str]) -> set[str]:
    return {phrase for text in texts for phrase in _phrases(text, PHRASE)}


def _phrases(text: str, length: int) -> list[str]:
    words = [word.lower() for word in _WORDS.findall(text)]
    return [" ".join(words[at : at + length]) for at in range(len(words) - length + 1)]
