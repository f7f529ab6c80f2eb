import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import Capability
from dispatcher.intents.connective import CutKind
from dispatcher.intents.plan import MAX_INTENTS, SpanRank
from dispatcher.intents.segment import DecomposeRules, choose_spans
from dispatcher.intents.span_table import SpanTable, all_spans

RULES = DecomposeRules()
S, A, J, P, C, W, L = sorted(CutKind, reverse=True)


def _rank(name: str, score: float, *, in_scope: bool = True) -> SpanRank:
    return SpanRank(capability=Capability(name), score=score, similarity=score, in_scope=in_scope)


def _two(cut: CutKind, left: SpanRank, right: SpanRank, uncut: SpanRank, **words):
    """Two clauses, both asking and neither standing if nothing else is said."""
    table = SpanTable(
        cuts=[S, cut],
        asking=words.get("asking", (True, True)),
        standing=words.get("standing", (False, False)),
        leaning=(False, words.get("leaning", False)),
        items=(False, words.get("item", False)),
        ranks={(0, 1): left, (1, 2): right, (0, 2): uncut},
    )
    return choose_spans(table, RULES)


def test_a_connective_between_two_strong_wishes_stays_cut():
    assert _two(W, _rank("a", 0.6), _rank("b", 0.5), _rank("a", 0.55)) == ((0, 1), (1, 2))


def test_a_connective_inside_one_wish_does_not_cut():
    assert _two(W, _rank("a", 0.6), _rank("b", 0.3), _rank("a", 0.7)) == ((0, 2),)


def test_two_halves_that_are_both_weaker_than_the_whole_stay_together():
    assert _two(C, _rank("a", 0.6), _rank("b", 0.58), _rank("a", 0.8)) == ((0, 2),)


def test_neighbours_of_one_capability_are_one_wish():
    assert _two(S, _rank("a", 0.6), _rank("a", 0.6), _rank("a", 0.5)) == ((0, 2),)


def test_a_sentence_that_improves_its_neighbour_is_context():
    left, right = _rank("x", 0.2, in_scope=False), _rank("address", 0.5)

    assert _two(S, left, right, _rank("address", 0.55), asking=(False, True)) == ((0, 2),)


def test_a_wish_out_of_scope_stays_a_piece_of_its_own():
    left, right = _rank("a", 0.6), _rank("x", 0.2, in_scope=False)

    assert _two(W, left, right, _rank("a", 0.4)) == ((0, 1), (1, 2))


def test_a_wish_out_of_scope_stays_when_it_comes_first():
    left, right = _rank("x", 0.2, in_scope=False), _rank("a", 0.6)

    assert _two(C, left, right, _rank("a", 0.4)) == ((0, 1), (1, 2))


def test_an_aside_out_of_scope_is_a_wish_of_its_own_even_if_the_whole_still_ranks_well():
    left, right = _rank("a", 0.6), _rank("x", 0.2, in_scope=False)
    whole = _rank("a", 0.6)

    assert _two(A, left, right, whole) == ((0, 1), (1, 2))
    assert _two(C, left, right, whole) == ((0, 2),)
    assert _two(A, left, right, whole, asking=(True, False)) == ((0, 2),)


@pytest.mark.parametrize("cut", [W, J, A, S])
def test_two_questions_of_two_capabilities_that_stand_are_two_wishes_however_well_the_whole_ranks(cut):
    ranks = _rank("a", 0.6), _rank("b", 0.5), _rank("a", 0.9)

    assert _two(cut, *ranks, standing=(True, True)) == ((0, 1), (1, 2))


def test_behind_a_mere_comma_only_the_ranks_tell_two_questions_apart():
    left, right, standing = _rank("a", 0.6), _rank("b", 0.5), (True, True)

    assert _two(C, left, right, _rank("a", 0.64), standing=standing) == ((0, 2),)
    assert _two(C, left, right, _rank("c", 0.7), standing=standing) == ((0, 2),)
    assert _two(C, left, right, _rank("c", 0.64), standing=standing) == ((0, 1), (1, 2))
    assert _two(C, left, right, _rank("c", 0.64)) == ((0, 2),)


@pytest.mark.parametrize(("cut", "item"), [(L, False), (W, True)])
def test_things_of_a_list_are_cut_where_both_are_likely_wishes(cut, item):
    def split(left: SpanRank, right: SpanRank, uncut: SpanRank) -> bool:
        spans = _two(cut, left, right, uncut, item=item, standing=(True, True))
        return len(spans) == 2

    assert split(_rank("a", 0.8), _rank("b", 0.75), _rank("a", 0.8))
    assert not split(_rank("a", 0.8), _rank("b", 0.65), _rank("a", 0.7))
    assert not split(_rank("a", 0.8), _rank("b", 0.75), _rank("a", 0.95))
    assert split(_rank("a", 0.9), _rank("b", 0.92), _rank("a", 1.1))
    assert not split(_rank("a", 0.9), _rank("a", 0.92), _rank("a", 0.9))
    assert not split(_rank("a", 0.9), _rank("b", 0.2, in_scope=False), _rank("a", 0.1))


def test_something_unlikely_behind_a_bare_and_belongs_to_the_wish_before_it():
    left, right, standing = _rank("a", 0.8), _rank("b", 0.45), (True, True)

    assert _two(W, left, right, _rank("a", 0.6), standing=standing) == ((0, 2),)
    assert _two(W, left, right, _rank("b", 0.6), standing=standing) == ((0, 1), (1, 2))
    assert _two(W, _rank("a", 0.48), right, _rank("a", 0.4), standing=standing) == ((0, 1), (1, 2))
    assert _two(P, left, right, _rank("a", 0.6), standing=standing) == ((0, 1), (1, 2))


@pytest.mark.parametrize("cut", [S, J, P, C])
def test_what_leans_on_the_piece_before_joins_it_unless_it_ranks_well(cut):
    left, weak, uncut = _rank("a", 0.7), _rank("b", 0.59), _rank("a", 0.6)

    assert _two(cut, left, weak, uncut, leaning=True) == ((0, 2),)
    assert _two(cut, left, _rank("b", 0.61), uncut, leaning=True) == ((0, 1), (1, 2))
    assert _two(cut, left, _rank("x", 0.9, in_scope=False), uncut, leaning=True) == ((0, 2),)


def test_an_aside_leans_on_nothing():
    left, right = _rank("a", 0.7), _rank("x", 0.3, in_scope=False)

    assert _two(A, left, right, _rank("a", 0.5), leaning=True) == ((0, 1), (1, 2))


def test_one_that_needs_the_other_is_context_if_the_whole_ranks_better():
    ranks = _rank("a", 0.6), _rank("b", 0.5), _rank("a", 0.61)

    assert _two(S, *ranks, standing=(True, False)) == ((0, 2),)


@pytest.mark.parametrize("cut", [W, J])
def test_a_question_out_of_scope_behind_a_connective_is_a_wish_of_its_own(cut):
    left, right, whole = _rank("a", 0.6), _rank("a", 0.2, in_scope=False), _rank("a", 0.9)

    assert _two(cut, left, right, whole, standing=(False, True)) == ((0, 1), (1, 2))
    assert _two(cut, left, right, whole) == ((0, 2),)
    assert _two(cut, right, left, whole, standing=(True, False)) == ((0, 2),)
    assert _two(cut, right, left, whole, standing=(True, True)) == ((0, 1), (1, 2))


def test_a_question_out_of_scope_behind_a_comma_is_hidden_only_by_a_whole_that_hardly_suffers():
    left, right = _rank("a", 0.6), _rank("b", 0.2, in_scope=False)

    assert _two(C, left, right, _rank("a", 0.56), standing=(True, True)) == ((0, 1), (1, 2))
    assert _two(C, left, right, _rank("a", 0.58), standing=(True, True)) == ((0, 2),)
    assert _two(C, left, right, _rank("a", 0.56)) == ((0, 2),)


def test_a_wish_out_of_scope_is_not_merged_with_the_capability_it_is_nearest_to():
    left, right = _rank("faq", 0.6), _rank("faq", 0.2, in_scope=False)

    assert _two(S, left, right, _rank("faq", 0.4)) == ((0, 1), (1, 2))
    assert _two(S, left, right, _rank("faq", 0.4), asking=(True, False)) == ((0, 2),)


def test_a_remark_out_of_scope_is_dropped_as_filler():
    left, right = _rank("a", 0.6), _rank("x", 0.2, in_scope=False)

    assert _two(S, left, right, _rank("a", 0.4), asking=(True, False)) == ((0, 1),)


def test_filler_is_never_all_there_is():
    left, right = _rank("x", 0.2, in_scope=False), _rank("y", 0.1, in_scope=False)

    assert _two(S, left, right, _rank("z", 0.1, in_scope=False), asking=(False, False)) == ((0, 1),)


def test_with_nothing_registered_the_message_is_one_piece():
    nothing = SpanRank(capability=None, score=0.0, similarity=0.0, in_scope=False)

    assert _two(S, nothing, nothing, nothing) == ((0, 2),)


def test_the_ninth_wish_stays_with_the_eighth():
    ranks = {
        (first, beyond): _rank(
            f"c{first}" if beyond == first + 1 else "mix", 0.6 if beyond == first + 1 else 0.1
        )
        for first, beyond in all_spans(9)
    }

    table = SpanTable(
        cuts=[S] * 9,
        asking=[True] * 9,
        standing=[True] * 9,
        leaning=[False] * 9,
        items=[False] * 9,
        ranks=ranks,
    )

    spans = choose_spans(table, RULES)

    assert spans == (*((at, at + 1) for at in range(7)), (7, 9))


@given(st.data())
def test_spans_are_in_order_disjoint_and_few_whatever_the_ranks(data):
    count = data.draw(st.integers(1, 9))
    kinds = data.draw(st.lists(st.sampled_from(CutKind), min_size=count, max_size=count))
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    asking, standing, leaning, items = (data.draw(flags) for _ in range(4))
    rank = st.builds(
        SpanRank,
        capability=st.sampled_from("abc").map(Capability),
        score=st.floats(-1, 1),
        similarity=st.floats(0, 1),
        in_scope=st.booleans(),
    )
    ranks = {span: data.draw(rank) for span in all_spans(count)}
    table = SpanTable(cuts=kinds, asking=asking, standing=standing, leaning=leaning, items=items, ranks=ranks)

    spans = choose_spans(table, RULES)

    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert 1 <= len(spans) <= MAX_INTENTS
    assert all(first < beyond for first, beyond in spans)
