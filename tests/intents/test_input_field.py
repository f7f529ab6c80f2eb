import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.intents.input_field import input_fields
from dispatcher.intents.plan import EntityKind


def _field(described, **top):
    (field,) = input_fields({"properties": {"value": described}, **top})
    return field


@pytest.mark.parametrize(
    ("described", "value"),
    [
        ({"type": "number"}, 2.5),
        ({"type": "integer"}, 2),
        ({"type": "string"}, "a"),
        ({"type": "boolean"}, True),
        ({"type": "array"}, [1]),
        ({"type": "object"}, {"a": 1}),
        ({"type": ["null", "string"]}, "a"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, 2),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, "a"),
        ({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}, "b"),
        ({"const": "a"}, "a"),
        ({}, object()),
    ],
)
def test_a_value_of_the_right_type_fits(described, value):
    assert _field(described).fitted(value) == value


@pytest.mark.parametrize(
    ("described", "value"),
    [
        ({"type": "number"}, "2.5"),
        ({"type": "number"}, True),
        ({"type": "integer"}, 2.5),
        ({"type": "string"}, 2),
        ({"type": "boolean"}, 1),
        ({"type": "null"}, 0),
        ({"type": [7]}, 7),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "a"),
        ({"allOf": [{"type": "string"}, {"enum": ["a"]}]}, "b"),
        ({"const": "a"}, "b"),
    ],
)
def test_a_value_of_another_type_does_not_fit(described, value):
    assert _field(described).fitted(value) is None


def test_a_whole_number_is_given_to_an_integer_field_as_one():
    fitted = _field({"type": "integer"}).fitted(200.0)

    assert (fitted, type(fitted)) == (200, int)


def test_references_are_followed_and_their_siblings_kept():
    schema = {
        "$ref": "#/$defs/In~1put",
        "$defs": {
            "In/put": {
                "properties": {"price": {"$ref": "#/$defs/Price", "x-from": "order/amount"}},
                "required": ["price"],
            },
            "Price": {"type": "number"},
        },
    }

    (field,) = input_fields(schema)

    assert (field.required, field.sources) == (True, (("order", "amount"),))
    assert (field.fitted(2.5), field.fitted("2.5")) == (2.5, None)


@pytest.mark.parametrize("reference", ["#/$defs/Loop", "#/$defs/Choice", "#/nowhere", "other.json#/x", 7])
def test_references_without_an_end_or_a_target_restrict_nothing(reference):
    loops = {"Loop": {"$ref": "#/$defs/Loop"}, "Choice": {"anyOf": [{"$ref": "#/$defs/Choice"}]}}

    field = _field({"$ref": reference}, **{"$defs": loops})

    assert field.fitted("anything") == "anything"


@pytest.mark.parametrize(
    ("described", "sources"),
    [
        ({"x-from": "order.query/amount"}, (("order.query", "amount"),)),
        ({"x-from": ["a/x", "b/y", "a/x"]}, (("a", "x"), ("b", "y"))),
        ({"x-from": ["no-field", 7, None]}, ()),
        ({"x-from": {"a": 1}}, ()),
        ({}, ()),
    ],
)
def test_sources_are_what_the_schema_names_in_its_order(described, sources):
    assert _field(described).sources == sources


@pytest.mark.parametrize(
    ("name", "described", "kind"),
    [
        ("phone", {}, EntityKind.PHONE),
        ("mobile", {"x-entity": "phone"}, EntityKind.PHONE),
        ("phone", {"x-entity": "date"}, EntityKind.DATE),
        ("phone", {"x-entity": ["phone"]}, None),
        ("name", {}, None),
    ],
)
def test_the_entity_kind_is_named_or_is_the_name(name, described, kind):
    (field,) = input_fields({"properties": {name: described}})

    assert field.entity is kind


@pytest.mark.parametrize(
    ("described", "label"),
    [
        ({"description": "The order's number", "title": "Number"}, "The order's number"),
        ({"description": "订单号\n(十位数字)\t", "title": "Number"}, "订单号 (十位数字)"),
        ({"description": " \n", "title": "Number"}, "Number"),
        ({"description": 7, "title": ["Number"]}, "order no"),
        ({"$ref": "#/$defs/No"}, "Ten digits"),
        ({"description": "x" * 199 + " yz"}, "x" * 199),
    ],
)
def test_a_person_is_asked_in_the_words_of_the_schema(described, label):
    (field,) = input_fields(
        {"properties": {"order_no": described}, "$defs": {"No": {"description": "Ten digits"}}}
    )

    assert field.label == label


def test_a_name_without_words_is_its_own_label():
    labels = [field.label for field in input_fields({"properties": {"__": {}, "": {}}})]

    assert labels == ["__", ""]


KEYWORDS = (
    *("type", "properties", "required", "anyOf", "$ref", "enum", "const"),
    *("title", "description", "x-from", "x-entity"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from(["properties", "required", "$ref", "$defs"]), JSON), JSON)
def test_no_schema_is_an_error(schema, value):
    for field in input_fields(schema):
        field.fitted(value)
        assert len(field.label.splitlines()) <= 1
