import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.errors import RequestError
from dispatcher.gateway.body import check_media_type, digest_document, parse_document
from dispatcher.protocol.storable import MAX_DEPTH, find_flaw
from tests.gateway.bad_inputs import BAD_INPUTS, MARK

STORABLE = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
TEXTS = st.text(st.characters() | st.sampled_from(["\x00", "\ud800", "\udfff", "{", "\\"]), max_size=3)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | STORABLE
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STORABLE, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(STORABLE, NESTED, max_size=4)


@settings(deadline=None)
@given(DOCUMENTS)
def test_every_storable_document_comes_through_unchanged(document):
    assert parse_document(json.dumps(document).encode()) == document
    assert parse_document(json.dumps(document, ensure_ascii=False).encode()) == document


@settings(deadline=None)
@given(TEXTS, st.sampled_from([0, 1, MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH]), st.booleans())
def test_a_document_is_refused_exactly_where_it_can_not_be_kept(text, levels, is_ascii):
    document = {text: _nested(levels, text)}
    raw = json.dumps(document, ensure_ascii=is_ascii).encode(errors="surrogatepass")

    assert _is_taken(raw) == (find_flaw(document) is None)


def _nested(levels: int, innermost: object) -> object:
    return innermost if levels == 0 else [_nested(levels - 1, innermost)]


def _is_taken(raw: bytes) -> bool:
    try:
        parse_document(raw)
    except RequestError:
        return False
    return True


def _object(pairs):
    return "{" + ", ".join(f"{json.dumps(name)} : {value}" for name, value in pairs) + "}"


NAMES = st.sampled_from(["a", "b", "a:b", ""])
VALUES = st.sampled_from(["1", "-0", "1.5", "1e2", str(2**63 - 1), str(2**63), '"x:y"', "null", "[true]"])
OBJECTS = st.recursive(
    VALUES,
    lambda inner: st.lists(st.tuples(NAMES, inner), max_size=3).map(_object),
    max_leaves=6,
)


@settings(deadline=None)
@given(OBJECTS)
def test_a_document_is_read_as_the_standard_library_reads_it_or_refused_for_a_name_or_number(text):
    flaws: list[str] = ["unusable_number"] if str(2**63) in text else []

    def note_twice(pairs):
        if len(dict(pairs)) < len(pairs):
            flaws.append("duplicate_name")
        return dict(pairs)

    expected = json.loads(text, object_pairs_hook=note_twice)
    if not isinstance(expected, dict):
        flaws.append("malformed_json")
    assert _outcome(text.encode()) in (flaws or [repr(expected)])


def _outcome(raw: bytes) -> str:
    """The document, or the code of the refusal."""
    try:
        return repr(parse_document(raw))
    except RequestError as refusal:
        return refusal.error_code


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_document_or_a_refusal(raw):
    try:
        document = parse_document(raw)
    except RequestError:
        return
    assert isinstance(document, dict)


@settings(deadline=None)
@given(DOCUMENTS)
def test_the_digest_does_not_depend_on_the_order_of_names(document):
    turned = dict(reversed(document.items()))

    assert digest_document(turned) == digest_document(document)


@settings(deadline=None)
@given(DOCUMENTS)
def test_digests_are_those_that_were_stored_before(document):
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert digest_document(document) == hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize("number", [1e16, 1e-5, 1e22, -0.0, 5e-324, 0.1])
def test_floats_are_spelled_in_digests_as_before(number):
    digest = hashlib.sha256(f'{{"a":[{{"b":{number!r}}}]}}'.encode()).hexdigest()

    assert digest_document({"a": [{"b": number}]}) == digest


def test_documents_that_differ_have_different_digests():
    assert digest_document({"a": 1}) != digest_document({"a": "1"})


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"x": ', "}")])
def test_the_deepest_level_allowed_is_taken(opening, closing):
    inside = MAX_DEPTH - 1

    document = parse_document(f'{{"x": {opening * inside}1{closing * inside}}}'.encode())

    assert document["x"]


@pytest.mark.parametrize("bad", [b for b in BAD_INPUTS if b.status == 422], ids=lambda b: b.name)
def test_what_is_not_storable_json_is_refused_by_the_pure_rule(bad):
    if bad.code == "invalid_body":
        assert parse_document(bad.raw) is not None
        return

    with pytest.raises(RequestError) as refusal:
        parse_document(bad.raw)

    assert refusal.value.error_code == bad.code
    assert MARK not in refusal.value.message


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=UTF-8",
        'application/json;charset="utf8"',
    ],
)
def test_json_in_utf_8_is_admitted(content_type):
    check_media_type(content_type, None)
    check_media_type(content_type, "identity")


@pytest.mark.parametrize(
    "content_type", [None, "", "text/json", "application/jsonx", "application/problem+json"]
)
def test_other_media_types_are_not(content_type):
    with pytest.raises(RequestError, match="Content-Type"):
        check_media_type(content_type, None)
