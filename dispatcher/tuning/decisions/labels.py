"""Which decisions people should look at, and what those they looked at teach.

Labelled rows have the form of an evaluation set: `text`, `lang`, `agents` (names of capabilities,
none for out of scope).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dispatcher.dispatch.fallback import refused_by_floors, went_to_fallback
from dispatcher.dispatch.lifecycle.judgement import Verdict
from dispatcher.identifiers import Capability
from dispatcher.routing.decision import Decision, Outcome
from dispatcher.tuning.decisions.decision_log import Entry
from dispatcher.tuning.decisions.replay import is_named

OPTIONS = 3
"""Capabilities suggested for each text, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a text asks for; `capability` None is out of scope."""

    text: str
    language: str
    capability: Capability | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """A text to be labelled: why, and the best capabilities with their cosines.

    `margin` is that between the first two; `height` how far the text is above its scope floor.
    """

    entry: Entry
    reason: str
    options: Sequence[tuple[Capability, float]]
    margin: float | None
    height: float


def labels(entries: Iterable[Entry]) -> Iterator[Label]:
    """One label for each decision that somebody judged well enough to learn from.

    A capability that its caller named says nothing about texts and is left out, and so is a wrong
    capability where nobody said which would be right. What the floors refused rightly is out of scope,
    whoever got it; what was refused for another reason, rightly, may ask for anything.
    """
    for entry in entries:
        decision = entry.decision
        if entry.verdict is None or is_named(decision):
            continue
        verdict = Verdict(entry.verdict)
        capability = _right(verdict, decision, entry.right_capability)
        is_outside = verdict is Verdict.OUT_OF_SCOPE or _is_refused_rightly(verdict, decision)
        if capability is not None or is_outside:
            yield Label(text=entry.text, language=entry.language, capability=capability)


def unsure(entries: Iterable[Entry], *, margin: float, height: float) -> list[Unsure]:
    """Decisions that nobody judged and that could as well have gone another way, the closest first.

    Those are texts below their scope floor or less than `height` above it, and texts whose second best
    capability is less than `margin` behind the best one (both in cosine). Each text once.
    """
    found: dict[str, Unsure] = {}
    for entry in entries:
        if entry.verdict is None and not is_named(entry.decision):
            one = _unsure(entry, margin=margin, height=height)
            if one is not None:
                found.setdefault(entry.text, one)
    return sorted(found.values(), key=lambda one: (_closeness(one), one.entry.text))


def _right(verdict: Verdict, decision: Decision, said: str | None) -> Capability | None:
    if verdict is Verdict.WRONG_CAPABILITY:
        return Capability(said) if said else None
    is_refused = decision.outcome in {Outcome.OUT_OF_SCOPE, Outcome.HANDED_OFF}
    is_own = not (is_refused or went_to_fallback(decision) or refused_by_floors(decision))
    return decision.capability if is_own and verdict is not Verdict.OUT_OF_SCOPE else None


def _is_refused_rightly(verdict: Verdict, decision: Decision) -> bool:
    return verdict is Verdict.RIGHT and refused_by_floors(decision)


def _unsure(entry: Entry, *, margin: float, height: float) -> Unsure | None:
    decision = entry.decision
    above = decision.scope_score - decision.scope_floor
    if refused_by_floors(decision):
        reason = "out_of_scope"
    elif above < height:
        reason = "near_the_floor"
    elif entry.margin is not None and entry.margin < margin:
        reason = "low_margin"
    else:
        return None
    return Unsure(entry=entry, reason=reason, options=_options(decision), margin=entry.margin, height=above)


def _options(decision: Decision) -> list[tuple[Capability, float]]:
    best: dict[Capability, float] = {}
    for one in decision.candidates:
        best[one.capability] = max(one.cosine, best.get(one.capability, -1.0))
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:OPTIONS]


def _closeness(one: Unsure) -> float:
    distances = [abs(one.height)] if one.margin is None else [abs(one.height), abs(one.margin)]
    return min(distances)
