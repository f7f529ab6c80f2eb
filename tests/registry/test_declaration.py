"""Rules of a declaration beyond its schema."""

import pytest

from dispatcher.errors import RegistrationError
from dispatcher.registry.declaration import check_declaration, digest, warnings


def test_equal_declarations_have_equal_digests(declaration, capability):
    one = declaration(capability(input_schema={"type": "object", "properties": {}}))
    other = declaration(capability(input_schema={"properties": {}, "type": "object"}))

    assert digest(one, "production") == digest(other, "production")


def test_any_change_changes_the_digest(declaration, capability):
    before = declaration()
    digests = {
        digest(before, "production"),
        digest(before, "staging"),
        digest(declaration(capability(idempotent=False)), "production"),
        digest(declaration(max_load=9), "production"),
    }

    assert len(digests) == 4


def test_a_capability_declared_twice_is_refused_by_name(declaration, capability):
    twice = declaration(capability("a"), capability("b"), capability("b"))

    with pytest.raises(RegistrationError) as refused:
        check_declaration(twice)

    assert (refused.value.error_code, refused.value.fields) == ("duplicate_capability", ("b",))


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC"])
def test_known_time_zones_are_taken(declaration, zone):
    check_declaration(declaration(available_hours={"start": "08:00", "end": "20:00", "time_zone": zone}))


@pytest.mark.parametrize("zone", ["Mars/Olympus", "Europe", "../etc/passwd", "", "/"])
def test_unknown_time_zones_are_refused(declaration, zone):
    hours = {"start": "08:00", "end": "20:00", "time_zone": zone}

    with pytest.raises(RegistrationError) as refused:
        check_declaration(declaration(available_hours=hours))

    assert refused.value.error_code == "unknown_time_zone"


@pytest.mark.parametrize(
    "fields",
    [
        {"descriptions": ["a\x00b"]},
        {"examples": ["a\x00b"]},
        {"input_schema": {"properties": {"a\x00": {}}}},
        {"input_schema": {"examples": [{"x": ["a\x00"]}]}},
    ],
)
def test_a_text_with_nul_is_refused_wherever_it_is(declaration, capability, fields):
    with pytest.raises(RegistrationError) as refused:
        check_declaration(declaration(capability(**fields)))

    assert refused.value.error_code == "unstorable_text"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
@pytest.mark.parametrize("schema", ["input_schema", "output_schema"])
def test_a_schema_from_the_wire_with_a_number_that_is_not_finite_is_refused(
    declaration, capability, schema, number
):
    encoded = declaration(capability(**{schema: {"properties": {"amount": {"maximum": "HERE"}}}}))
    read = type(encoded).model_validate_json(encoded.model_dump_json().replace('"HERE"', number))

    with pytest.raises(RegistrationError) as refused:
        check_declaration(read)

    assert refused.value.error_code == "unstorable_number"


def test_few_examples_and_one_language_are_warned_about(declaration, capability):
    poor = capability("a", examples=["one", "two"])
    rich = capability("b", descriptions=["Find an order", "查询订单"], examples=["one", "two", "three"])

    found = warnings(declaration(poor, rich))

    assert len(found) == 2
    assert all(text.startswith("a: ") for text in found)
    assert found[1] == "a: described without Chinese"


@pytest.mark.parametrize(
    ("descriptions", "said"),
    [
        (["Find an order", "Eine Bestellung suchen"], ["a: described without Chinese"]),
        (["查询订单", "订单在哪里"], ["a: described in Chinese only"]),
        (["查询订单", "Eine Bestellung suchen"], []),
    ],
)
def test_a_warning_about_languages_claims_no_more_than_is_looked_at(
    declaration, capability, descriptions, said
):
    texts = {"descriptions": descriptions, "examples": ["one", "two", "three"]}

    assert warnings(declaration(capability("a", **texts))) == said
