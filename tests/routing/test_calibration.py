"""What a registry's own examples and the background make of its scores."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.background import background_texts
from dispatcher.routing.calibration import LEAST_SPAN, calibrate, heights, observe, refused_share
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.prototype import DeclaredTexts, build_prototype
from dispatcher.routing.prototype_store import arrange
from dispatcher.routing.reference import load_reference
from dispatcher.routing.slots import Key
from dispatcher.routing.use_encoder import UseEncoder

MADE_OF = ("encoder", 7)
ENCODER = HashingEncoder()
BACKGROUND = ENCODER.encode(background_texts())
PARCEL = ("tracks the parcel", "where is the parcel", "the parcel is late", "parcel tracking number")
REFUND = ("pays the refund", "when comes the refund", "the refund is wrong", "refund my payment")


def _registry(**declared):
    prototypes = {}
    for name, (description, *examples) in declared.items():
        key = Key(Capability(name), AgentId(name))
        texts = DeclaredTexts(descriptions=(description,), examples=tuple(examples))
        prototypes[key] = build_prototype(key, texts, ENCODER.encode(texts.all))
    return arrange(prototypes, ENCODER.dimensions)


def _calibrated(registry, reference=None):
    observed = observe(registry, BACKGROUND)
    return calibrate(observed, reference, len(registry.capabilities), MADE_OF), observed


@pytest.fixture
def both():
    return _registry(parcel=PARCEL, refund=REFUND)


def test_examples_are_accepted_and_the_background_refused(both):
    calibration, observed = _calibrated(both)

    assert calibration.kind == "self"
    assert refused_share(calibration, observed, 0.35) <= 0.2
    assert calibration.accepts(observed.outside.score, 0.35).mean() <= 0.1
    assert (calibration.encoder_id, calibration.registry_version) == MADE_OF


def test_similarity_is_a_probability_that_rises_with_the_score(both):
    calibration, _ = _calibrated(both)

    p = calibration.similarity(np.linspace(-1, 1, 41))

    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) >= 0).all()
    assert p[-1] > 0.8
    assert p[0] < 0.2


def test_without_examples_the_floor_is_a_quantile_and_p_is_all_or_nothing():
    calibration, observed = _calibrated(_registry(parcel=PARCEL[:1], refund=REFUND[:1]))

    assert calibration.kind == "uncalibrated"
    assert (observed.outside.score < calibration.floor).mean() == pytest.approx(0.95, abs=0.02)
    beside = calibration.similarity(np.array([calibration.floor - 1e-6, calibration.floor]))
    assert beside.tolist() == [0, 1]
    assert refused_share(calibration, observed, 0.35) == 0
    assert heights(observed)[1] == LEAST_SPAN


def test_few_examples_lean_on_the_reference_rows(both):
    reference = load_reference(UseEncoder.encoder_id)

    assert _calibrated(both, reference)[0].kind == "reference"


def test_many_examples_outweigh_the_reference_rows():
    many = [f"parcel number {number} is where" for number in range(60)]

    calibration, _ = _calibrated(_registry(parcel=("tracks", *many)), load_reference(UseEncoder.encoder_id))

    assert calibration.kind == "self"


def test_reference_rows_follow_the_registrys_own_heights(both):
    observed = observe(both, BACKGROUND)
    outside = replace(observed.outside, score=observed.outside.score + 0.3)
    inside = observed.inside
    assert inside is not None
    raised = replace(observed, outside=outside, inside=replace(inside, score=inside.score + 0.3))
    reference = load_reference(UseEncoder.encoder_id)

    low, high = (calibrate(one, reference, 2, MADE_OF) for one in (observed, raised))

    assert high.floor - low.floor == pytest.approx(0.3, abs=1e-6)


def test_both_floors_must_be_passed(both):
    calibration, _ = _calibrated(both)
    above = np.array([calibration.floor + 0.01])

    assert calibration.accepts(above, 0.0).all()
    assert not calibration.accepts(above, 1.0).any()
    assert not calibration.accepts(above - 0.02, 0.0).any()


def test_an_empty_registry_is_uncalibrated():
    assert _calibrated(_registry())[0].kind == "uncalibrated"


def test_the_same_registry_gives_the_same_calibration(both):
    assert _calibrated(both)[0] == _calibrated(both)[0]
