"""A stored calibration reads back to the last bit."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded, calibration_document, read_calibration
from dispatcher.routing.curve import Curve

numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.from_regex(r"\A[a-z][a-z0-9._-]{0,20}\Z").map(Capability)
calibrations = st.builds(
    Calibration,
    encoder_id=st.text(max_size=20),
    registry_version=st.integers(0, 2**53),
    kind=st.sampled_from(["self", "reference", "uncalibrated", "labelled", "traffic"]),
    floor=numbers,
    curve=st.none() | st.builds(Curve, slope=numbers, intercept=numbers),
    floors=st.dictionaries(names, numbers, max_size=4),
    twins=st.frozensets(st.tuples(names, names), max_size=4),
)


@given(calibrations, st.text(max_size=12))
def test_it_reads_back_equal(calibration, contrast):
    recorded = Recorded(calibration=calibration, contrast=contrast)

    document = orjson.loads(orjson.dumps(calibration_document(recorded)))

    assert read_calibration(document) == recorded


def _document():
    made = Calibration(encoder_id="e", registry_version=1, kind="self", floor=0.1, curve=None)
    return calibration_document(Recorded(calibration=made, contrast="c"))


def test_what_a_later_version_adds_is_ignored():
    assert read_calibration(_document() | {"new": 1}) == read_calibration(_document())


@pytest.mark.parametrize(
    "change",
    [{"form": 2}, {"floors": None}, {"curve": 3}, {"twins": [["one"]]}, {"twins": 3}],
)
def test_another_form_is_refused(change):
    with pytest.raises(ConfigurationError, match="can't read"):
        read_calibration(_document() | change)


def test_what_is_no_calibration_is_refused():
    with pytest.raises(ConfigurationError, match="can't read"):
        read_calibration({"form": 1})
