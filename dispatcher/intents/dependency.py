"""Links between the intents of a plan: which field waits for whose result; pure, never refuses.

A link exists only where a field's schema names its source; equal names alone never link.
"""

from collections.abc import Mapping, Sequence

from dispatcher.identifiers import Capability
from dispatcher.intents.input_field import InputField
from dispatcher.intents.plan import Link, Source
from dispatcher.records import replace

Links = Mapping[int, tuple[Link, ...]]
"""The links of each intent, by its position."""


def link_to(field: InputField, position: int, capabilities: Sequence[Capability | None]) -> Link | None:
    """The link that feeds `field` of the intent at `position`; None where nobody in the plan can.

    Sources are in the order the schema names them; several intents of one capability in the
    order of the text. An intent is never its own source.
    """
    sources = tuple(
        Source(position=producer, output=output)
        for capability, output in field.sources
        for producer, offered in enumerate(capabilities)
        if offered == capability and producer != position
    )
    return Link(field=field.name, sources=sources, required=field.required) if sources else None


def without_cycles(links: Links) -> Links:
    """The links with every cycle opened.

    As long as there is a cycle, one consumer on it stops waiting for one producer: first where
    only optional fields wait, then where the producer comes later in the text; of equal ones the
    latest producer. A field may keep its other sources.
    """
    kept = dict(links)
    while closed := _edges_on_cycles(kept):
        consumer, producer = min(closed, key=lambda edge: _worth(kept, *edge))
        kept[consumer] = tuple(left for link in kept[consumer] if (left := _without(link, producer)).sources)
    return kept


def _edges_on_cycles(links: Links) -> list[tuple[int, int]]:
    waits = {consumer: _producers(own) for consumer, own in links.items()}
    return [
        (consumer, producer)
        for consumer, producers in waits.items()
        for producer in producers
        if consumer in _reachable(producer, waits)
    ]


def _producers(links: Sequence[Link]) -> frozenset[int]:
    return frozenset(source.position for link in links for source in link.sources)


def _reachable(start: int, waits: Mapping[int, frozenset[int]]) -> frozenset[int]:
    seen: set[int] = set()
    ahead = [start]
    while ahead:
        position = ahead.pop()
        if position not in seen:
            seen.add(position)
            ahead.extend(waits.get(position, ()))
    return frozenset(seen)


def _worth(links: Links, consumer: int, producer: int) -> tuple[bool, bool, int, int]:
    """Smaller is given up first."""
    required = any(
        link.required
        for link in links[consumer]
        if any(source.position == producer for source in link.sources)
    )
    return required, producer < consumer, -producer, consumer


def _without(link: Link, producer: int) -> Link:
    return replace(link, sources=tuple(s for s in link.sources if s.position != producer))
