"""Whether a text asks for several capabilities nearly alike, so that its person is asked (pure)."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from dispatcher.identifiers import Capability
from dispatcher.routing.decision import Advice, Option
from dispatcher.routing.ranking import Ranking
from dispatcher.routing.rules import ClarifyRules

MAX_OPTIONS = 3
Twins = AbstractSet[tuple[Capability, Capability]]


def near_options(
    ranking: Ranking, rules: ClarifyRules, is_offered: Callable[[Capability], bool], twins: Twins
) -> tuple[Option, ...]:
    """The best capability and those too near to it, best first; empty where there is nothing to ask.

    A margin counts in units of the ranking's `scale`, the median lead of the best capability over the
    mean: a cosine difference means another thing to each encoder, and calibrated similarities lie
    close together at their ends, or are 0 and 1. Of a pair the larger margin holds. Twins are never a
    choice: nobody can tell them apart. What a language model chose is not asked about again.
    """
    if not ranking.in_scope or Advice.CHOICE in ranking.advice:
        return ()
    best = ranking.capabilities[0]
    if not is_offered(best.capability):
        return ()
    found = [Option(best.capability, best.similarity)]
    for one in ranking.capabilities[1:]:
        margin = max(rules.margin_of(best.capability), rules.margin_of(one.capability)) * ranking.scale
        is_near = best.score - one.score < margin
        if is_near and not _is_twin(one.capability, found, twins) and is_offered(one.capability):
            found.append(Option(one.capability, one.similarity))
    return tuple(found[:MAX_OPTIONS]) if len(found) > 1 else ()


def _is_twin(capability: Capability, found: list[Option], twins: Twins) -> bool:
    others = [one.capability for one in found]
    return any((capability, other) in twins or (other, capability) in twins for other in others)
