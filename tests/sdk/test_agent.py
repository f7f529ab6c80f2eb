"""What an agent declares, read from its handlers."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from dispatcher.errors import ConfigurationError, RequestError
from dispatcher.sdk import Agent, BusinessError, Entity, From, NeedsInput, Reply, TaskView
from tests.sdk.stub_link import task_view


class Question(BaseModel):
    amount: Annotated[float | None, From("order.query/amount"), Entity("amount")] = None
    number: Annotated[str, From("order.query/number", "cart.read/number")]


class Answer(BaseModel):
    total: float


def agent_with(function, **options) -> Agent:
    agent = Agent("shop")
    agent.handler("shop.do", description="Does it.", **options)(function)
    return agent


def declared(function, **options) -> Any:
    (capability,) = agent_with(function, **options).declaration().capabilities
    return capability


def test_schemas_come_from_the_annotations():
    def handle(question: Question, task: TaskView) -> Reply[Answer] | NeedsInput | BusinessError:
        raise NotImplementedError

    capability = declared(handle)

    fields = capability.input_schema["properties"]
    assert fields["amount"]["x-from"] == "order.query/amount"
    assert fields["amount"]["x-entity"] == "amount"
    assert fields["number"]["x-from"] == ["order.query/number", "cart.read/number"]
    assert capability.input_schema["required"] == ["number"]
    assert capability.output_schema["properties"]["total"]["type"] == "number"


def test_a_bare_model_is_an_output_too():
    def handle() -> Answer | str | None:
        raise NotImplementedError

    assert declared(handle).output_schema["required"] == ["total"]


def test_a_handler_may_take_nothing_but_the_task():
    def handle(task: TaskView) -> str:
        raise NotImplementedError

    capability = declared(handle)

    assert (capability.input_schema, capability.output_schema) == ({}, {})


def test_what_is_said_of_a_capability_is_declared():
    def handle(task: TaskView) -> str:
        raise NotImplementedError

    capability = declared(handle, examples=["do it"], idempotent=True, timeout_s=2.5)

    assert capability.descriptions == ["Does it."]
    assert capability.examples == ["do it"]
    assert capability.idempotent
    assert capability.timeout_ms == 2500


def test_several_descriptions_are_kept_apart():
    agent = Agent("shop")
    agent.handler("shop.do", description=["做。", "Does it."])(lambda: "done")

    assert agent.declaration().capabilities[0].descriptions == ["做。", "Does it."]


def test_limits_are_declared_and_the_environment_can_be_overridden():
    agent = Agent("shop", max_load=3, environment="staging", version="2", trust_level=4)
    agent.handler("shop.do", description="Does it.")(lambda: "done")

    declaration = agent.declaration(channel="in-process", environment="test")

    assert (declaration.max_load, declaration.version, declaration.trust_level) == (3, "2", 4)
    assert (declaration.channel, declaration.environment) == ("in-process", "test")
    assert agent.declaration().environment == "staging"


def test_arguments_come_in_the_functions_own_order():
    def handle(task: TaskView, question: Question) -> str:
        raise NotImplementedError

    handler = agent_with(handle).handlers["shop.do"]
    view = task_view()

    assert handler.arguments({"number": "7"}, view) == [view, Question(number="7")]


def test_input_that_does_not_fit_names_the_field_and_not_the_value():
    def handle(question: Question) -> str:
        raise NotImplementedError

    with pytest.raises(RequestError, match=r"does not fit: amount, number$") as caught:
        agent_with(handle).handlers["shop.do"].arguments({"amount": "secret"}, task_view())

    assert caught.value.error_code == "invalid_input"


def test_a_parameter_without_meaning_is_refused():
    def handle(text: str) -> str:
        raise NotImplementedError

    with pytest.raises(ConfigurationError, match="annotate 'text'"):
        agent_with(handle)


def test_two_models_are_refused():
    def takes(first: Question, second: Answer) -> str:
        raise NotImplementedError

    def gives() -> Answer | Reply[Question]:

        raise NotImplementedError

    with pytest.raises(ConfigurationError, match="at most one model"):
        agent_with(takes)
    with pytest.raises(ConfigurationError, match="more than one model"):
        agent_with(gives)


def test_annotations_that_name_nothing_are_refused():
    def handle(question: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
        raise NotImplementedError

    with pytest.raises(ConfigurationError, match="can't be read"):
        agent_with(handle)


def test_a_capability_is_declared_once():
    agent = Agent("shop")
    agent.handler("shop.do", description="Does it.")(lambda: "done")

    with pytest.raises(ConfigurationError, match=r"declares shop\.do twice"):
        agent.handler("shop.do", description="Does it.")(lambda: "done")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"description": "x" * 501}, "descriptions.0: String should have at most 500 characters"),
        ({"description": []}, "descriptions: List should have at least 1 item after validation, not 0"),
        ({"description": "Does it.", "timeout_s": 0.01}, "timeout_s: from 0.1 to 3600 seconds"),
    ],
)
def test_a_capability_over_a_limit_names_the_field_and_the_rule(options, why):
    agent = Agent("shop")
    agent.handler("shop.do", **options)(lambda: "done")

    with pytest.raises(ConfigurationError) as caught:
        agent.declaration()

    assert caught.value.message == f"agent shop can't be declared: capability 'shop.do': {why}"


def test_a_capability_name_outside_the_contract_is_told_the_rule():
    agent = Agent("shop")
    agent.handler("Weather Now", description="Tells.")(lambda: "done")

    with pytest.raises(
        ConfigurationError, match=r"capability 'Weather Now': names are \[a-z0-9\._-\], 1 to 64 char"
    ):
        agent.declaration()


def test_the_agents_own_limits_are_named_too():
    agent = Agent("shop", max_load=0, zone="Zone 1")
    agent.handler("shop.do", description="Does it.")(lambda: "done")

    with pytest.raises(ConfigurationError) as caught:
        agent.declaration()

    assert "max_load: Input should be greater than or equal to 1" in caught.value.message
    assert "zone: names are [a-z0-9._-], 1 to 64 characters" in caught.value.message


def test_an_agent_without_a_handler_is_not_declared():
    with pytest.raises(ConfigurationError, match="an agent needs at least one handler"):
        Agent("shop").declaration()


@pytest.mark.parametrize("name", ["", "Shop", "a b", "x" * 65])
def test_names_outside_the_contract_are_refused(name):
    with pytest.raises(ConfigurationError, match="agent id"):
        Agent(name)


@pytest.mark.parametrize("source", ["amount", "order.query/", "/amount"])
def test_a_source_names_capability_and_field(source):
    with pytest.raises(ConfigurationError, match="capability/field"):
        From(source)
