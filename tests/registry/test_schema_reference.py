from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.intents.input_field import input_fields
from dispatcher.registry.schema import read_fields
from dispatcher.registry.schema_reference import MAX_REFERENCES, followed

ROOT: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "Price": {"type": "number", "title": "Price", "$ref": "#/$defs/Money"},
        "Money": {"description": "in yuan", "title": "Money"},
        "a/b~c": {"type": "string"},
        "loop": {"$ref": "#/$defs/loop", "title": "Loop"},
    },
}


@pytest.mark.parametrize(
    ("node", "schema"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"$ref": "#/$defs/Money"}, ROOT["$defs"]["Money"]),
        ({"$ref": "#/$defs/a~1b~0c"}, {"type": "string"}),
        ({"$ref": "#"}, ROOT),
        ({"$ref": "#/$defs/Price"}, {"type": "number", "title": "Price", "description": "in yuan"}),
        ({"$ref": "#/$defs/Money", "title": "Own"}, {"title": "Own", "description": "in yuan"}),
        ({"$ref": "#/nowhere", "title": "Own"}, {"title": "Own"}),
        ({"$ref": "#anchor", "title": "Own"}, {"title": "Own"}),
        ({"$ref": "other.json#/x"}, {}),
        ({"$ref": 7}, {}),
        ({"$ref": "#/type/x"}, {}),
        ({"$ref": "#/$defs/loop"}, {"title": "Loop"}),
        (True, {}),
    ],
)
def test_a_reference_is_what_it_names_and_what_stands_beside_it_wins(node, schema):
    assert followed(node, ROOT) == schema


@pytest.mark.parametrize(("length", "kind"), [(MAX_REFERENCES - 1, {"type": "string"}), (MAX_REFERENCES, {})])
def test_a_chain_is_followed_only_so_far(length, kind):
    chain = {str(at): {"$ref": f"#/{at + 1}"} for at in range(length)} | {str(length): {"type": "string"}}

    assert followed({"$ref": "#/0"} if length == 0 else chain["0"], chain) == kind


NAMES = ("number", "string", "boolean")
REFERENCES = st.sampled_from(["#/$defs/a", "#/$defs/b", "#/nowhere", "other.json", "#a"])
NODES = st.fixed_dictionaries({}, optional={"type": st.sampled_from(NAMES), "$ref": REFERENCES})


@given(NODES, NODES, NODES)
def test_contracts_and_input_read_the_same_types_of_a_reference(field, one, other):
    """Two readings accepted a declaration whose input they then filled with another type."""
    schema = {"properties": {"value": field}, "$defs": {"a": one, "b": other}}
    values = {"number": 2.5, "string": "x", "boolean": True}

    types = read_fields(schema).types["value"]
    (found,) = input_fields(schema)

    fitting = {name for name, value in values.items() if found.fitted(value) is not None}
    assert fitting == (set(NAMES) if types is None else types)
