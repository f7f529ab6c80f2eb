"""Which decisions people should look at, and what those they looked at teach.

Labelled rows have the form of an evaluation set: `text`, `lang`, `agents` (names of capabilities,
none for out of scope).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dispatcher.dispatch.fallback import refused_by_floors, went_to_fallback
from dispatcher.dispatch.lifecycle.judgement import Verdict
from dispatcher.identifiers import Capability, RequestId
from dispatcher.routing.decision import Decision, Outcome
from dispatcher.tuning.basis.rows import same_text
from dispatcher.tuning.decisions.decision_log import Entry
from dispatcher.tuning.decisions.replay import is_named, of_text

OPTIONS = 3
"""Capabilities suggested for each text, best first."""
MOST_UNSURE = 10_000
"""Texts that are offered for labelling at a time (some 10 MB)."""
REFUSED = "out_of_scope"
"""Reason of a text that the floors refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a text asks for; `capability` None is out of scope.

    One that does not `teach` says only that earlier judgements of the text stand no longer.
    """

    text: str
    language: str
    capability: Capability | None
    teaches: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """A text to be labelled: why, and the best capabilities with their cosines.

    `margin` is that between the first two; `height` how far the text is above its scope floor.
    """

    request_id: RequestId
    position: int
    text: str
    language: str
    reason: str
    options: Sequence[tuple[Capability, float]]
    margin: float | None
    height: float

    @property
    def closeness(self) -> float:
        """How near it was to going another way; what the floors refused could only have been accepted."""
        if self.reason == REFUSED or self.margin is None:
            return abs(self.height)
        return min(abs(self.height), abs(self.margin))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToLabel:
    """The closest texts, closest first; `left_out` counts decisions on further ones."""

    texts: Sequence[Unsure]
    left_out: int


def labels(entries: Iterable[Entry]) -> Iterator[Label]:
    """One label for each decision that somebody judged well enough to learn from.

    A capability that its caller named says nothing about texts and is left out. A wrong capability where
    nobody said which would be right teaches nothing, but what was said of the text before is revoked. What
    the floors refused rightly is out of scope, whoever got it; what was refused for another reason, rightly,
    may ask for anything.
    """
    for entry in entries:
        decision = entry.decision
        if entry.verdict is None or is_named(decision):
            continue
        verdict = Verdict(entry.verdict)
        capability = _right(verdict, decision, entry.right_capability)
        is_outside = verdict is Verdict.OUT_OF_SCOPE or _is_refused_rightly(verdict, decision)
        teaches = capability is not None or is_outside
        if teaches or verdict is Verdict.WRONG_CAPABILITY:
            yield Label(text=entry.text, language=entry.language, capability=capability, teaches=teaches)


def unsure(entries: Iterable[Entry], *, margin: float, height: float, most: int = MOST_UNSURE) -> ToLabel:
    """Decisions that nobody judged and that could as well have gone another way, the closest first.

    Those are texts below their scope floor or less than `height` above it, and texts whose second best
    capability is less than `margin` behind the best one (both in cosine). Each text once, as
    `rows.same_text` has it; the `most` closest, and never more than twice as many in memory.
    """
    found: dict[str, Unsure] = {}
    left_out = 0
    for entry in entries:
        if entry.verdict is None and not is_named(entry.decision):
            one = _unsure(entry, margin=margin, height=height)
            if one is not None:
                found.setdefault(same_text(one.text), one)
        if len(found) > 2 * most:
            left_out += len(found) - most
            found = {same_text(one.text): one for one in _closest(found.values(), most)}
    closest = _closest(found.values(), most)
    return ToLabel(texts=closest, left_out=left_out + len(found) - len(closest))


def _closest(found: Iterable[Unsure], most: int) -> Sequence[Unsure]:
    return sorted(found, key=lambda one: (one.closeness, one.text))[:most]


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
        reason = REFUSED
    elif above < height:
        reason = "near_the_floor"
    elif entry.margin is not None and entry.margin < margin:
        reason = "low_margin"
    else:
        return None
    return Unsure(
        request_id=entry.stored.request_id,
        position=entry.stored.position,
        text=entry.text,
        language=entry.language,
        reason=reason,
        options=_options(decision),
        margin=entry.margin,
        height=above,
    )


def _options(decision: Decision) -> list[tuple[Capability, float]]:
    """Of the text itself: none of a decision that kept only what the fallback capability has."""
    own = of_text(decision)
    if own is decision and went_to_fallback(decision):
        return []
    best: dict[Capability, float] = {}
    for one in own.candidates:
        best[one.capability] = max(one.cosine, best.get(one.capability, -1.0))
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:OPTIONS]
