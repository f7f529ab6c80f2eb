from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent
from dispatcher.tuning.registered import agent_rows


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
    rows = agent_rows(
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
    (row,) = agent_rows([agent(f"a{at}", ("refund", [f"words {at}"], [])) for at in range(6)])

    assert [key for key in row if key.startswith("desc_")] == ["desc_1", "desc_2", "desc_3", "desc_4"]


def test_nothing_registered_is_no_agents():
    assert agent_rows([]) == []
