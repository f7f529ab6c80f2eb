"""Schemas belong to the capability."""

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.repository import CapabilityContract
from dispatcher.registry.schema import contracts_to_set, misfits, read_fields


def contract(*, declared_by=("first",), inputs=None, outputs=None):
    return CapabilityContract(
        capability=Capability("order.query"),
        input_schema=inputs or {},
        output_schema=outputs or {},
        declared_by=frozenset(AgentId(name) for name in declared_by),
    )


def fields(required=(), **types):
    properties = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


def contracts(one):
    return {one.capability: one}


def test_the_first_registrant_sets_the_schemas(declaration, capability):
    declared = declaration(
        capability(input_schema=fields(order="string"), output_schema=fields(amount="number"))
    )

    (mine,) = contracts_to_set(AgentId("first"), declared, {})

    assert mine.input_schema == fields(order="string")
    assert mine.output_schema == fields(amount="number")


def test_the_only_agent_that_declares_a_capability_may_change_it(declaration, capability):
    declared = declaration(capability(input_schema=fields(order="integer")))
    old = contract(inputs=fields(order="string"))

    (mine,) = contracts_to_set(AgentId("first"), declared, contracts(old))

    assert mine.input_schema == fields(order="integer")


def test_schemas_that_nobody_declares_any_more_are_set_anew(declaration, capability):
    declared = declaration(capability(input_schema=fields(order="integer")))
    left_behind = contract(declared_by=(), inputs=fields(order="string"))

    assert contracts_to_set(AgentId("second"), declared, contracts(left_behind))


def test_a_fitting_declaration_leaves_the_contract_alone(declaration, capability):
    declared = declaration(capability(input_schema=fields(order="string", extra="string")))
    agreed = contract(inputs=fields(order="string"))

    assert contracts_to_set(AgentId("second"), declared, contracts(agreed)) == ()


def test_an_incompatible_declaration_is_refused_naming_the_fields(declaration, capability):
    declared = declaration(
        capability(
            input_schema=fields(order="integer", limit="integer", required=["limit", "note", "secret"]),
            output_schema=fields(amount="string"),
        )
    )
    agreed = contract(
        inputs=fields(order="string", limit="integer", note="string", required=["note"]),
        outputs=fields(amount="number", status="string"),
    )

    with pytest.raises(RegistrationError) as refused:
        contracts_to_set(AgentId("second"), declared, contracts(agreed))

    assert refused.value.error_code == "incompatible_schema"
    assert refused.value.fields == (
        "order.query/input/limit",
        "order.query/input/order",
        "order.query/input/secret",
        "order.query/output/amount",
        "order.query/output/status",
    )


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"properties": []}, "properties"),
        ({"properties": {"a": 1}}, "properties"),
        ({"required": "a"}, "required"),
        ({"required": [1]}, "required"),
    ],
)
def test_a_malformed_schema_is_refused(declaration, capability, schema, path):
    with pytest.raises(RegistrationError) as refused:
        contracts_to_set(AgentId("first"), declaration(capability(output_schema=schema)), {})

    assert refused.value.error_code == "invalid_schema"
    assert refused.value.fields == (f"order.query/output/{path}",)


class Item(BaseModel):
    sku: str


class Order(BaseModel):
    number: str
    count: int | None = None
    item: Item
    gift: Item | None = None
    state: Literal["open", "sent"] = "open"
    tags: list[str] = Field(default_factory=list)
    parent: "Order | None" = None


def test_the_schemas_pydantic_writes_are_understood():
    found = read_fields(Order.model_json_schema())

    assert found.required == {"number", "item"}
    assert {name: (types or frozenset()) - {"null"} for name, types in found.types.items()} == {
        "number": {"string"},
        "count": {"integer"},
        "item": {"object"},
        "gift": {"object"},
        "state": {"string"},
        "tags": {"array"},
        "parent": {"object"},
    }


def test_null_beside_a_type_makes_no_difference(capability):
    nullable = fields(count={"anyOf": [{"type": "integer"}, {"type": "null"}]})

    declared = capability(input_schema=nullable, output_schema=fields(count=["integer", "null"]))
    schemas = contract(
        inputs=fields(count={"type": ["null", "integer"]}), outputs=fields(count={"type": "integer"})
    )
    one = declared.model_copy(update={"output_schema": fields(count={"type": ["integer", "null"]})})

    assert misfits(schemas, one) == ()


@pytest.mark.parametrize(
    "untyped",
    [
        True,
        {},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "#/type/object"},
        {"$ref": "https://example.org/schema"},
        {"$ref": 7},
        {"$ref": "#/$defs/loop"},
        {"anyOf": [{"type": "string"}, {}]},
        {"allOf": [{"type": "string"}, {"maxLength": 3}]},
        {"enum": "x"},
    ],
)
def test_a_field_without_a_type_fits_every_type(untyped):
    schema = {**fields(value=untyped), "$defs": {"loop": {"$ref": "#/$defs/loop"}}}

    assert read_fields(schema).types == {"value": None}


@pytest.mark.parametrize(
    ("field", "types"),
    [
        ({"const": 1}, {"integer"}),
        (
            {"enum": ["a", None, 1.5, True, [], {}]},
            {"string", "null", "number", "boolean", "array", "object"},
        ),
        ({"oneOf": [{"type": "string"}, {"$ref": "#/$defs/a~1b~0c"}]}, {"string", "number"}),
        ({"allOf": [{"$ref": "#/$defs/a~1b~0c"}]}, {"number"}),
        ({"$ref": "#/$defs/self"}, {"string"}),
    ],
)
def test_types_are_found_through_values_alternatives_and_references(field, types):
    definitions = {
        "a/b~c": {"type": "number"},
        "self": {"anyOf": [{"$ref": "#/$defs/self"}, {"type": "string"}]},
    }

    assert read_fields({**fields(value=field), "$defs": definitions}).types == {"value": types}


def test_alternatives_that_refer_to_each_other_many_times_are_read_once():
    knot = {"anyOf": [{"$ref": "#/$defs/knot"}] * 1000 + [{"type": "string"}]}

    found = read_fields({**fields(value={"$ref": "#/$defs/knot"}), "$defs": {"knot": knot}})

    assert dict(found.types) == {"value": frozenset({"string"})}


@pytest.mark.parametrize("schema", [{}, {"properties": 1, "required": 1}, {"$ref": "#/properties"}])
def test_a_schema_of_nothing_has_no_fields(schema):
    found = read_fields(schema)

    assert (dict(found.types), found.required) == ({}, frozenset())


def test_alternatives_written_many_times_over_are_looked_at_once_each():
    """Each of the thousand refers to all of them: a million looks where they are not remembered."""
    looked = 0

    class Counted(dict[str, object]):
        def __contains__(self, key: object) -> bool:
            nonlocal looked
            looked += 1
            return super().__contains__(key)

    knot = {"anyOf": [*(Counted({"$ref": "#/$defs/knot"}) for _ in range(1000)), {"type": "string"}]}

    found = read_fields({**fields(value={"$ref": "#/$defs/knot"}), "$defs": {"knot": knot}})

    assert dict(found.types) == {"value": frozenset({"string"})}
    assert looked < 10_000
