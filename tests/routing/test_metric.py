"""Directions in which a capability's texts differ anyway count less."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing import metric
from dispatcher.routing.leave_one_out import registered
from dispatcher.routing.metric import IDENTITY, fit_metric
from dispatcher.routing.prototype import DeclaredTexts, build_prototype, unit
from dispatcher.routing.slots import Key

EAST, NORTH, UP = np.eye(3, dtype=np.float32)


def prototype(capability, agent, **vectors):
    texts = DeclaredTexts(descriptions=(), examples=tuple(vectors))
    key = Key(Capability(capability), AgentId(agent))
    return build_prototype(key, texts, unit(np.stack(list(vectors.values())).astype(np.float32)))


def registry(*prototypes):
    return registered(sorted(prototypes, key=lambda one: one.key), 3)


def politely(vector, much):
    """What people say more or less politely: UP is politeness, and says nothing of what they want."""
    return {f"{vector} {degree}": vector + degree * UP for degree in (-much, much)}


def cosine(fitted, query, vector):
    query, vector = (one[None].astype(np.float32) for one in (query, vector))
    return float(((fitted.turned(query) @ vector.T) * fitted.reach(vector))[0, 0])


def test_what_differs_within_capabilities_counts_less_between_them():
    fitted = fit_metric(
        registry(
            prototype("order", "a", **politely(EAST, 0.5)), prototype("refund", "b", **politely(NORTH, 0.5))
        )
    )

    polite = unit(EAST + UP)
    assert cosine(fitted, polite, EAST) > polite @ EAST
    assert cosine(fitted, polite, UP) < polite @ UP


def test_a_text_is_nearest_to_itself_at_1():
    fitted = fit_metric(registry(prototype("order", "a", **politely(EAST, 0.5))))

    for vector in (EAST, unit(EAST + UP), unit(NORTH - 2 * UP)):
        assert cosine(fitted, vector, vector) == pytest.approx(1, abs=1e-5)


def test_equal_agents_make_nothing_surer():
    one = prototype("order", "a", **politely(EAST, 0.5))
    again = prototype("order", "b", **politely(EAST, 0.5))

    twice, once = (fit_metric(registry(*shop)).matrix for shop in ((one, again), (one,)))
    assert twice is not None
    assert once is not None
    np.testing.assert_allclose(twice, once)


@pytest.mark.parametrize(
    "prototypes",
    [
        [],
        [prototype("order", "a", one=EAST)],
        [prototype("order", "a", one=EAST), prototype("refund", "b", two=NORTH)],
        [prototype("order", "a", one=EAST, same=EAST)],
    ],
    ids=["nothing", "one text", "one text each", "the same twice"],
)
def test_without_two_texts_that_differ_it_is_the_plain_cosine(prototypes):
    fitted = fit_metric(registry(*prototypes))

    assert fitted is IDENTITY
    assert cosine(fitted, unit(EAST + UP), UP) == pytest.approx(np.sqrt(0.5), abs=1e-6)


def test_of_a_large_registry_every_nth_capability_is_taken():
    count = metric.MAX_ROWS // 2 + 1
    prototypes = [prototype(f"c{at:05}", "a", **politely(EAST, 0.1 + at / count)) for at in range(count)]

    chosen = metric._texts(registry(*prototypes))

    assert len(chosen) == (count + 1) // 2


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_a_cosine_under_it_is_never_beyond_1(seed, capabilities):
    chance = np.random.default_rng(seed)
    made = [
        prototype(f"c{at}", "a", **{str(row): chance.normal(size=3) for row in range(1 + at % 4)})
        for at in range(capabilities)
    ]
    fitted = fit_metric(registry(*made))
    queries, vectors = (unit(chance.normal(size=(8, 3)).astype(np.float32)) for _ in range(2))

    cosines = fitted.turned(queries) @ vectors.T * fitted.reach(vectors)

    assert np.abs(cosines).max() <= 1 + 1e-4
