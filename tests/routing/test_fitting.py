"""A curve that would refuse clearly more of the registered examples waits for approval."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.background import background_texts
from dispatcher.routing.curve import Curve
from dispatcher.routing.fitting import FitRules, Fitted, Fixed, fit
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.ordering import LexicalShares, empty_ordering
from dispatcher.routing.prototype import DeclaredTexts, build_prototype
from dispatcher.routing.prototype_store import arrange
from dispatcher.routing.slots import Key

ENCODER = HashingEncoder()
FIXED = Fixed(background=ENCODER.encode(background_texts()), reference=None)
SHARES = LexicalShares(with_examples=0.2, without=0.5)
RULES = FitRules(similarity_floor=0.35, approval_margin=0.1, lexical=SHARES)
GOOD = ("tracks the parcel", "where is the parcel", "the parcel is late", "my parcel tracking")
NOISE = (*GOOD, "track the parcel", "the parcel tracking", "斑马吃什么", "夸克是谁")


def _registry(*texts: str):
    declared = DeclaredTexts(descriptions=texts[:1], examples=texts[1:])
    key = Key(Capability("parcel"), AgentId("a"))
    prototype = build_prototype(key, declared, ENCODER.encode(declared.all))
    return arrange({key: prototype}, ENCODER.dimensions)


def _fit(registry, old=None, rules=RULES):
    return fit(registry, FIXED, ("hashing", 1), old, rules)


@pytest.fixture
def lenient():
    """A fitted curve that refuses nothing."""
    used = replace(_fit(_registry(*GOOD)).used, floor=-1.0, curve=Curve(slope=1.0, intercept=5.0))
    return Fitted(used=used, ordering=empty_ordering(ENCODER.dimensions))


def test_the_first_one_is_used_at_once():
    fitted = _fit(_registry(*GOOD))

    assert fitted.used.kind == "self"
    assert fitted.pending is None


def test_one_that_refuses_clearly_more_waits_and_the_old_stays(lenient):
    fitted = _fit(_registry(*NOISE), lenient)

    assert fitted.used is lenient.used
    assert fitted.pending is not None
    assert fitted.refused > 0.1


def test_one_that_refuses_as_much_is_used(lenient):
    fitted = _fit(_registry(*NOISE), lenient, replace(RULES, approval_margin=1.0))

    assert fitted.used is not lenient.used
    assert fitted.pending is None


@pytest.mark.parametrize("texts", [GOOD, GOOD[:1]])
def test_uncalibrated_ones_are_never_compared(texts, lenient):
    uncalibrated = _fit(_registry(GOOD[0]))

    assert _fit(_registry(*texts), uncalibrated).pending is None
    assert _fit(_registry(GOOD[0]), lenient).used.kind == "uncalibrated"


def test_what_refuses_less_is_used(lenient):
    strict = replace(lenient, used=replace(lenient.used, floor=np.inf))

    assert _fit(_registry(*GOOD), strict).pending is None
