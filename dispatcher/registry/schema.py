"""Schemas belong to the capability: who may set them, and what fits them.

Only top-level fields and their JSON types are compared. A field without a type fits every
type; `null` beside a type only says that the field may be left empty.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.repository import CapabilityContract
from dispatcher.registry.schema_reference import followed

JsonTypes = frozenset[str] | None
"""The JSON types a value may have; None where the schema doesn't say."""

_JSON_TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of an object schema: their types, and which must be given."""

    types: Mapping[str, JsonTypes]
    required: frozenset[str]


def contracts_to_set(
    agent_id: AgentId, declaration: Declaration, contracts: Mapping[Capability, CapabilityContract]
) -> tuple[CapabilityContract, ...]:
    """The contracts this declaration sets: of capabilities that no other agent declares.

    Raises:
        RegistrationError: `invalid_schema` or `incompatible_schema`; `fields` name them as
            `capability/input/field` or `capability/output/field`.
    """
    malformed = tuple(path for c in declaration.capabilities for path in _malformed(c))
    if malformed:
        raise RegistrationError(
            "a schema is not a JSON Schema of an object", code="invalid_schema", fields=malformed
        )
    to_set: list[CapabilityContract] = []
    unfit: list[str] = []
    for declared in declaration.capabilities:
        contract = contracts.get(Capability(declared.name))
        if contract is None or contract.declared_by <= {agent_id}:
            to_set.append(_contract(agent_id, declared))
        else:
            unfit += [f"{declared.name}/{path}" for path in misfits(contract, declared)]
    if unfit:
        raise RegistrationError(
            "the schemas do not fit those that the capability already has: " + ", ".join(unfit),
            code="incompatible_schema",
            fields=tuple(unfit),
        )
    return tuple(to_set)


def misfits(contract: CapabilityContract, declared: CapabilityDeclaration) -> tuple[str, ...]:
    """The fields, as `input/name` or `output/name`, that keep a declaration from fitting a contract.

    An input field that both know has the same type in both; none is required that the contract
    doesn't require. Every output field of the contract is there, with the same type.
    """
    agreed_in, own_in = read_fields(contract.input_schema), read_fields(declared.input_schema)
    agreed_out, own_out = read_fields(contract.output_schema), read_fields(declared.output_schema)
    inputs = (own_in.required - agreed_in.required) | {
        name
        for name in agreed_in.types.keys() & own_in.types.keys()
        if not _same(agreed_in.types[name], own_in.types[name])
    }
    outputs = {
        name
        for name, types in agreed_out.types.items()
        if name not in own_out.types or not _same(types, own_out.types[name])
    }
    return (*(f"input/{name}" for name in sorted(inputs)), *(f"output/{name}" for name in sorted(outputs)))


def read_fields(schema: Mapping[str, object]) -> Fields:
    """The top-level fields of an object schema; none for an empty or foreign one."""
    node = followed(schema, schema)
    properties = node.get("properties")
    required = node.get("required")
    known = properties if isinstance(properties, Mapping) else {}
    return Fields(
        types={name: _types(field, schema) for name, field in known.items()},
        required=frozenset(required if isinstance(required, list) else ()),
    )


def _contract(agent_id: AgentId, declared: CapabilityDeclaration) -> CapabilityContract:
    return CapabilityContract(
        capability=Capability(declared.name),
        input_schema=dict(declared.input_schema),
        output_schema=dict(declared.output_schema),
        declared_by=frozenset({agent_id}),
    )


def _same(one: JsonTypes, other: JsonTypes) -> bool:
    return one is None or other is None or one - {"null"} == other - {"null"}


def _malformed(declared: CapabilityDeclaration) -> Iterator[str]:
    for side, schema in (("input", declared.input_schema), ("output", declared.output_schema)):
        node = followed(schema, schema)
        properties, required = node.get("properties", {}), node.get("required", [])
        if not isinstance(properties, dict) or not all(
            isinstance(f, dict | bool) for f in properties.values()
        ):
            yield f"{declared.name}/{side}/properties"
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            yield f"{declared.name}/{side}/required"


def _types(field: object, root: Mapping[str, object]) -> JsonTypes:
    """The union over all alternatives; each list of them is looked at once, whatever refers to it."""
    found: set[str] = set()
    waiting, seen = [field], set[int]()
    while waiting:
        node = followed(waiting.pop(), root)
        alternatives = _alternatives(node)
        if id(alternatives) in seen:
            continue
        if alternatives:
            seen.add(id(alternatives))
            waiting += alternatives
        elif (own := _own_types(node)) is None:
            return None
        else:
            found |= own
    return frozenset(found)


def _alternatives(node: Mapping[str, object]) -> list[object]:
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = node.get(keyword)
        if isinstance(branches, list) and (keyword != "allOf" or len(branches) == 1):
            return branches
    return []


def _own_types(node: Mapping[str, object]) -> JsonTypes:
    declared = node.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(str(name) for name in declared)
    values = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(values, list):
        return frozenset(_JSON_TYPES.get(type(value), "object") for value in values)
    return None
