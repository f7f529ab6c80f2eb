from dispatcher.identifiers import Capability
from dispatcher.intents.declared_fields import DeclaredFields
from dispatcher.registry.repository import CapabilityContract

ORDER, FAQ = Capability("order"), Capability("faq")


def _contracts(**fields):
    return {
        Capability(name): CapabilityContract(
            capability=Capability(name),
            input_schema={"properties": {field: {"type": "string"} for field in own}},
            output_schema={},
        )
        for name, own in fields.items()
    }


def _names(fields):
    return {capability: [field.name for field in own] for capability, own in fields.items()}


def test_only_what_is_wanted_and_registered_has_fields():
    contracts = _contracts(order=["order_number", "phone"], faq=[])

    found = DeclaredFields().of(contracts, [ORDER, None, Capability("gone")])

    assert _names(found) == {ORDER: ["order_number", "phone"]}


def test_a_schema_is_read_once_while_the_contracts_stay():
    declared, contracts = DeclaredFields(), _contracts(order=["order_number"], faq=[])

    first, second = (declared.of(contracts, [ORDER, FAQ]) for _ in range(2))

    assert first[ORDER] is second[ORDER]
    assert first[FAQ] == ()


def test_other_contracts_have_other_fields():
    declared = DeclaredFields()
    declared.of(_contracts(order=["order_number"]), [ORDER])

    assert _names(declared.of(_contracts(order=["phone"]), [ORDER])) == {ORDER: ["phone"]}
    assert declared.of(_contracts(faq=[]), [ORDER]) == {}
