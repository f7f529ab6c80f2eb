"""Which calibrations can be used here, which were stored before, and which a person holds in force."""

from dataclasses import replace

import pytest

from dispatcher.errors import RequestError
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.stored_calibration import (
    InUse,
    Made,
    State,
    brief,
    is_held,
    is_repeated,
    not_readable,
)
from tests.routing.stored import OWN, UNREADABLE, stored

HERE = InUse(encoder_id="hashing", contrast="c")


@pytest.mark.parametrize(
    ("kind", "origin", "named"),
    [
        ("self", "self", "self"),
        ("reference", "self", "reference"),
        ("uncalibrated", "self", "uncalibrated"),
        ("labelled", "labelled", "labelled 4"),
        ("traffic", "traffic", "traffic 4"),
    ],
)
def test_a_decision_names_the_number_unless_it_is_the_registrys_own(kind, origin, named):
    one = stored(replace(OWN, kind=kind))

    assert (one.origin, one.named.kind) == (origin, named)


@pytest.mark.parametrize(
    ("recorded", "code"),
    [
        (Recorded(calibration=replace(OWN, encoder_id="other"), contrast="c"), "other_encoder"),
        (Recorded(calibration=OWN, contrast="older"), "other_contrast"),
    ],
)
def test_one_whose_scores_mean_something_else_is_refused(recorded, code):
    assert not HERE.takes(recorded)
    with pytest.raises(RequestError) as refused:
        HERE.check(recorded)
    assert refused.value.error_code == code


def test_one_of_this_encoder_is_taken():
    HERE.check(stored().recorded)

    assert HERE.takes(stored().recorded)


def _made(**changes) -> Made:
    calibration = replace(OWN, **changes)
    return Made(recorded=Recorded(calibration=calibration, contrast="c"), made_by="dispatcher")


def test_one_of_the_same_registry_that_decides_alike_is_repeated_in_whatever_state_it_is():
    assert is_repeated(_made(floor=0.2 + 1e-9), stored(state=State.RETIRED))


@pytest.mark.parametrize(
    ("made", "known"),
    [
        (_made(registry_version=4), stored()),
        (_made(floor=0.25), stored()),
        (_made(), stored(contrast="older")),
        (_made(), stored(replace(OWN, kind="labelled"))),
    ],
)
def test_any_other_is_new(made, known):
    assert not is_repeated(made, known)


@pytest.mark.parametrize(
    ("kind", "before", "wanted", "held"),
    [
        ("self", State.PROPOSED, State.IN_FORCE, False),
        ("self", State.SHADOW, State.IN_FORCE, False),
        ("self", State.RETIRED, State.IN_FORCE, True),
        ("self", State.IN_FORCE, State.IN_FORCE, True),
        ("labelled", State.PROPOSED, State.IN_FORCE, True),
        ("labelled", State.IN_FORCE, State.RETIRED, False),
    ],
)
def test_approving_a_proposal_of_the_dispatchers_holds_nothing(kind, before, wanted, held):
    assert is_held(stored(replace(OWN, kind=kind), state=before), wanted, newest=3) is held


@pytest.mark.parametrize("before", [State.PROPOSED, State.SHADOW])
@pytest.mark.parametrize(("made_by", "newest"), [("dispatcher", 4), ("command line", 3)])
def test_one_that_is_older_or_made_by_a_person_is_no_proposal_wherever_it_waits(before, made_by, newest):
    assert is_held(replace(stored(state=before), made_by=made_by), State.IN_FORCE, newest)


def test_what_cannot_be_read_is_listed_without_what_is_in_it():
    known = brief(stored())

    assert (known["registry_version"], known["scope_floor"], known["encoder_id"]) == (3, 0.2, "hashing")
    assert brief(UNREADABLE) == known | {"registry_version": None, "scope_floor": None}


def test_what_cannot_be_read_has_a_code_of_its_own():
    assert (not_readable().error_code, not_readable().message) == (
        "not_readable",
        "It has a form that this version can't read.",
    )
