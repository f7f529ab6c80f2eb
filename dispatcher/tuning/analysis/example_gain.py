"""What examples buy: two runs of the same requests side by side, before and after. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.metrics import Figure
from dispatcher.tuning.basis.rows import AgentRow, with_examples
from dispatcher.tuning.evaluation.routed import RoutedRow, lost_share, right_share, split


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """Of requests inside, with so many examples of each agent; None where there are none."""

    examples: int
    right: Figure | None
    lost: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many requests for each capability are answered: right winner, and accepted.

    `repaired` and `broken` are requests that only one of both runs answers.
    """

    capability: Capability
    of: int
    before: int
    after: int
    repaired: tuple[str, ...]
    broken: tuple[str, ...]


def limited(agents: Mapping[Capability, AgentRow], count: int) -> dict[Capability, AgentRow]:
    """The agents with their first `count` examples."""
    return {name: with_examples(row, count, ()) for name, row in agents.items()}


def extended(
    agents: Mapping[Capability, AgentRow], added: Mapping[Capability, Sequence[str]]
) -> dict[Capability, AgentRow]:
    """The agents with these examples after their own."""
    return {
        name: replace(row, examples=(*row.examples, *added.get(name, ()))) for name, row in agents.items()
    }


def learnt(examples: int, routed: Iterable[RoutedRow]) -> Learnt:
    """The figures of one run."""
    inside, _ = split(routed)
    if not inside:
        return Learnt(examples=examples, right=None, lost=None)
    return Learnt(examples=examples, right=right_share(inside), lost=lost_share(inside))


def gains(before: Sequence[RoutedRow], after: Sequence[RoutedRow]) -> list[Gain]:
    """By capability; both runs are of the same requests in the same order (`Laboratory.beside`)."""
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one.row.wanted]
    names = sorted({name for one, _ in pairs for name in one.row.wanted})
    return [_gain(name, [pair for pair in pairs if name in pair[0].row.wanted]) for name in names]


def strangers(routed: Iterable[RoutedRow]) -> int:
    """Requests out of scope that are accepted."""
    _, outside = split(routed)
    return sum(one.in_scope for one in outside)


def _gain(name: Capability, pairs: Sequence[tuple[RoutedRow, RoutedRow]]) -> Gain:
    return Gain(
        capability=name,
        of=len(pairs),
        before=sum(_is_answered(one) for one, _ in pairs),
        after=sum(_is_answered(other) for _, other in pairs),
        repaired=tuple(o.row.text for o, p in pairs if _is_answered(p) and not _is_answered(o)),
        broken=tuple(o.row.text for o, p in pairs if _is_answered(o) and not _is_answered(p)),
    )


def _is_answered(one: RoutedRow) -> bool:
    return one.is_right and one.in_scope
