from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent
from dispatcher.tuning.basis.dataset import read_dataset
from dispatcher.tuning.basis.fleet import fleet
from dispatcher.tuning.basis.registered import exported_rows, texts_left_out
from tests.tuning.sets import request, write


def agent(name, *capabilities):
    declared = [
        CapabilityDeclaration(name=capability, descriptions=descriptions, examples=examples)
        for capability, descriptions, examples in capabilities
    ]
    return Agent(
        agent_id=AgentId(name),
        declaration=Declaration(capabilities=declared),
        digest=name,
        environment="production",
    )


def test_each_capability_has_the_texts_of_all_its_agents_once():
    rows = exported_rows(
        [
            agent("b", ("refund", ["gives money back"], ["refund me", "money back"])),
            agent(
                "a", ("refund", ["gives money back", "退款"], ["refund me"]), ("order", ["finds orders"], [])
            ),
        ]
    )

    assert rows == [
        {"id": "order", "desc_1": "finds orders", "examples": []},
        {
            "id": "refund",
            "desc_1": "gives money back",
            "desc_2": "退款",
            "examples": ["refund me", "money back"],
        },
    ]


def test_no_more_descriptions_than_a_declaration_may_hold():
    (row,) = exported_rows([agent(f"a{at}", ("refund", [f"words {at}"], [])) for at in range(6)])

    assert [key for key in row if key.startswith("desc_")] == ["desc_1", "desc_2", "desc_3", "desc_4"]


def test_nothing_registered_is_no_agents():
    assert exported_rows([]) == []


def test_no_more_examples_either_and_what_is_left_out_is_counted():
    many = [
        agent(name, ("refund", ["gives money back", f"by {name}"], [f"{name} {at}" for at in range(11)]))
        for name in "abc"
    ]

    (row,) = exported_rows(many)

    assert row["examples"] == [*(f"a {at}" for at in range(11)), *(f"b {at}" for at in range(9))]
    assert texts_left_out(many) == 13
    assert texts_left_out([*many, agent("d", ("refund", ["by d", "more"], ["a 0"]))]) == 13 + 2
    assert texts_left_out(many[:1]) == 0


def test_what_several_agents_declare_can_be_registered_again(tmp_path):
    many = [
        agent(name, ("refund", [f"by {name}"], [f"{name} {at}" for at in range(11)])) for name in "abcdef"
    ]

    folder = write(tmp_path, agents=exported_rows(many), eval=[request("refund me", "refund")])

    (again,) = fleet(read_dataset(folder).agents).agents
    (declared,) = again.declaration.capabilities
    assert (len(declared.descriptions), len(declared.examples)) == (4, 20)
