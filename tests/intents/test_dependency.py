from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import Capability
from dispatcher.intents.dependency import link_to, without_cycles
from dispatcher.intents.input_field import input_fields
from dispatcher.intents.plan import Link, Source


def _field(*sources: str, required: bool = False):
    schema = {"properties": {"value": {"x-from": list(sources)}}, "required": ["value"] if required else []}
    (field,) = input_fields(schema)
    return field


def _link(field: str, *positions: int, required: bool = False) -> Link:
    return Link(
        field=field, sources=tuple(Source(position=p, output="x") for p in positions), required=required
    )


def _capabilities(*names: str | None) -> list[Capability | None]:
    return [Capability(name) if name else None for name in names]


def _waits(links):
    return {
        consumer: sorted({source.position for link in own for source in link.sources})
        for consumer, own in links.items()
    }


def test_sources_follow_the_schema_then_the_text():
    link = link_to(_field("b/y", "a/x"), 1, _capabilities("a", "c", "b", "a", None, "b"))

    assert link is not None
    assert [(source.position, source.output) for source in link.sources] == [
        (2, "y"),
        (5, "y"),
        (0, "x"),
        (3, "x"),
    ]


def test_an_intent_is_never_its_own_source():
    link = link_to(_field("a/x"), 0, _capabilities("a", "a"))

    assert link is not None
    assert [source.position for source in link.sources] == [1]
    assert link_to(_field("a/x"), 0, _capabilities("a", "b")) is None


def test_a_cycle_loses_its_optional_edge():
    links = {0: (_link("f", 1, required=True),), 1: (_link("g", 0),)}

    assert _waits(without_cycles(links)) == {0: [1], 1: []}


def test_a_cycle_of_required_edges_loses_the_one_that_waits_for_later_text():
    links = {0: (_link("f", 1, required=True),), 1: (_link("g", 0, required=True),)}

    assert _waits(without_cycles(links)) == {0: [], 1: [0]}


def test_an_optional_field_beside_a_required_one_does_not_make_the_edge_optional():
    links = {0: (_link("f", 1, required=True), _link("o", 1)), 1: (_link("g", 0),)}

    assert without_cycles(links) == {0: links[0], 1: ()}


def test_a_field_keeps_its_other_sources():
    links = {0: (_link("f", 1, 2),), 1: (_link("g", 0, required=True),), 2: ()}

    assert _waits(without_cycles(links)) == {0: [2], 1: [0], 2: []}


def test_links_without_a_cycle_stay_as_they_are():
    links = {0: (), 1: (_link("f", 0), _link("g", 2)), 2: (_link("h", 0),)}

    assert without_cycles(links) == links


@st.composite
def _any_links(draw):
    count = draw(st.integers(1, 8))
    links = {}
    for consumer in range(count):
        others = st.sampled_from([p for p in range(count) if p != consumer] or [0])
        fields = draw(
            st.lists(
                st.tuples(st.lists(others, min_size=1, max_size=3, unique=True), st.booleans()), max_size=3
            )
        )
        own = [
            _link(f"f{at}", *positions, required=required) for at, (positions, required) in enumerate(fields)
        ]
        links[consumer] = tuple(own) if count > 1 else ()
    return links


@given(_any_links())
def test_whatever_the_links_none_of_the_rest_form_a_cycle(links):
    waits = _waits(without_cycles(links))

    done: set[int] = set()
    while ready := {p for p, producers in waits.items() if p not in done and done.issuperset(producers)}:
        done |= ready
    assert done == set(links)


@given(_any_links())
def test_opening_cycles_only_takes_away(links):
    before, after = _waits(links), _waits(without_cycles(links))

    assert all(set(after[p]) <= set(before[p]) for p in links)
