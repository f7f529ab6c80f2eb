"""What is used where replicas have agreed on a calibration: it, or the registry's own newer one."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration, Observed
from dispatcher.routing.curve import Curve, Rows
from dispatcher.routing.fitting import FitRules, Fitted, Given, agree, is_like
from dispatcher.routing.ordering import LexicalShares, empty_ordering
from dispatcher.routing.shadow import Shadow

RULES = FitRules(
    similarity_floor=0.35, approval_margin=0.1, lexical=LexicalShares(with_examples=0.2, without=0.5)
)
OWN = Calibration(
    encoder_id="e", registry_version=5, kind="self", floor=0.2, curve=Curve(slope=20.0, intercept=-2.0)
)
TWINS = frozenset({(Capability("one"), Capability("other"))})


def _rows(*scores: float) -> Rows:
    count = len(scores)
    return Rows(score=np.array(scores), right=np.ones(count, dtype=np.bool_), weight=np.full(count, 1.0))


def _fitted(newest: Calibration, *scores: float, refused: float = 0.0) -> Fitted:
    return Fitted(
        used=newest,
        newest=newest,
        refused=refused,
        ordering=empty_ordering(2),
        observed=Observed(inside=_rows(*(scores or (0.3,))), outside=_rows(0.0), left_out=None),
    )


def test_where_nothing_is_in_force_the_registrys_own_is_used():
    fitted = agree(_fitted(OWN), Given(base=None), RULES)

    assert fitted.used is OWN


@pytest.mark.parametrize("version", [1, 9])
def test_what_a_person_holds_in_force_is_used_with_the_registrys_twins(version):
    held = replace(OWN, kind="labelled 3", floor=0.7, registry_version=version)

    fitted = agree(_fitted(replace(OWN, twins=TWINS)), Given(base=held, is_held=True), RULES)

    assert fitted.used == replace(held, twins=TWINS)
    assert fitted.newest is not None
    assert fitted.pending is None


def test_one_of_a_newer_registry_is_used():
    newer = replace(OWN, floor=0.1, registry_version=6)

    assert agree(_fitted(OWN), Given(base=newer), RULES).used is newer


def test_of_one_registry_version_the_one_in_force_stays():
    base = replace(OWN, floor=0.1)

    fitted = agree(_fitted(OWN), Given(base=base), RULES)

    assert (fitted.used, fitted.newest, fitted.pending) == (base, OWN, None)


def test_one_that_decides_alike_is_kept_to_the_last_bit():
    base = replace(OWN, floor=OWN.floor + 1e-9, registry_version=4)

    assert agree(_fitted(OWN), Given(base=base), RULES).used is base


def test_a_newer_one_of_the_registrys_takes_its_place():
    base = replace(OWN, floor=0.1, registry_version=4)

    fitted = agree(_fitted(OWN), Given(base=base), RULES)

    assert (fitted.used, fitted.pending) == (OWN, None)


def test_one_that_refuses_clearly_more_waits():
    base = replace(OWN, floor=0.1, registry_version=4)

    fitted = agree(_fitted(OWN, 0.15, refused=1.0), Given(base=base), RULES)

    assert (fitted.used, fitted.pending) == (base, OWN)


def test_what_waited_no_longer_does_once_it_is_in_force():
    waiting = replace(_fitted(OWN, 0.15, refused=1.0), used=replace(OWN, floor=0.1), pending=OWN)

    fitted = agree(waiting, Given(base=OWN), RULES)

    assert (fitted.used, fitted.pending) == (OWN, None)


@pytest.mark.parametrize(("new", "old"), [(None, OWN.curve), (OWN.curve, None)])
def test_only_fitted_ones_are_compared(new, old):
    newest = replace(OWN, curve=new)
    base = replace(OWN, curve=old, registry_version=4)

    assert agree(_fitted(newest, 0.15, refused=1.0), Given(base=base), RULES).used is newest


def test_without_rows_nothing_can_be_compared():
    fitted = Fitted(used=OWN, ordering=empty_ordering(2), refused=1.0)

    assert agree(fitted, Given(base=replace(OWN, floor=0.1, registry_version=4)), RULES).used is OWN


def test_the_one_in_shadow_is_asked_and_another_takes_its_place():
    asked = Shadow(number=2, calibration=OWN)

    fitted = agree(_fitted(OWN), Given(base=None, shadow=asked), RULES)

    assert fitted.shadow is asked
    assert agree(fitted, Given(base=None), RULES).shadow is None


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        ({}, True),
        ({"registry_version": 1, "twins": TWINS}, True),
        ({"floor": 0.2 + 1e-6}, True),
        ({"floor": 0.21}, False),
        ({"kind": "reference"}, False),
        ({"encoder_id": "other"}, False),
        ({"floors": {Capability("one"): 0.3}}, False),
        ({"curve": None}, False),
        ({"curve": Curve(slope=20.0, intercept=-2.0 + 1e-6)}, True),
        ({"curve": Curve(slope=30.0, intercept=-4.0)}, False),
    ],
)
def test_those_that_decide_alike_are_one(change, alike):
    assert is_like(replace(OWN, **change), OWN) is alike


def test_uncalibrated_ones_are_told_apart_by_their_floor():
    plain = replace(OWN, kind="uncalibrated", curve=None)

    assert is_like(plain, plain)
    assert not is_like(replace(plain, floor=0.3), plain)
