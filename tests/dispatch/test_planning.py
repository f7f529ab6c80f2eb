"""What a message is understood as, and that remembering texts changes nothing of it."""

import ast
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from dispatcher.dispatch.lifecycle.request import ChatMessage
from dispatcher.dispatch.lifecycle.session import Question, Session
from dispatcher.dispatch.planning import Planned, Planner
from dispatcher.identifiers import CallerId, Capability
from dispatcher.intents.decompose import RuleDecomposer
from dispatcher.intents.plan import Plan
from dispatcher.intents.reading import read_text
from dispatcher.intents.segment import DecomposeRules
from dispatcher.registry.repository import CapabilityContract
from dispatcher.routing.router import CapabilityScore, Ranking, Router

ORDER, PARCEL, QUOTE, CHAT = map(Capability, ("order.query", "parcel.track", "promotion.quote", "small.talk"))
FIELDS: Mapping[Capability, Mapping[str, object]] = {
    ORDER: {"order_number": {"type": "string"}, "phone": {"type": "string"}},
    PARCEL: {"order_number": {"type": "string"}, "date": {"type": "string"}},
    QUOTE: {"amount": {"type": "number", "x-from": "order.query/amount"}},
}


class ByChecksum:
    """Ranks texts in a way that follows from nothing but their characters, a quarter out of scope."""

    async def rank(self, texts: Sequence[str]) -> tuple[Ranking, ...]:
        return tuple(map(self._rank, texts))

    def _rank(self, text: str) -> Ranking:
        number = zlib.crc32(text.encode("utf-8", "surrogatepass"))
        names = (ORDER, PARCEL, QUOTE, CHAT)
        score = (number >> 8) % 600 / 1000 + 0.3
        best = CapabilityScore(capability=names[number % 4], agent_cosines={}, cosine=score, similarity=score)
        return Ranking(
            text=text,
            capabilities=(best,),
            scope_score=score,
            scope_floor=0.2,
            in_scope=number >> 20 & 3 != 0,
            encoder_id="checksum",
            registry_version=1,
            calibration="self",
        )


class Today:
    """A calendar that a test turns the pages of."""

    def __init__(self) -> None:
        self.day = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.day


def contracts(required: Sequence[str] = ("order_number",)) -> dict[Capability, CapabilityContract]:
    return {
        name: CapabilityContract(
            capability=name,
            input_schema={"properties": fields, "required": list(required)},
            output_schema={},
        )
        for name, fields in FIELDS.items()
    }


CONTRACTS = contracts()


def planner(calendar: Today | None = None) -> Planner:
    """One that remembers."""
    return Planner(
        decomposer=RuleDecomposer(DecomposeRules()),
        router=cast("Router", ByChecksum()),
        contracts=lambda: CONTRACTS,
        calendar=calendar or Today(),
    )


def forgetful() -> Planner:
    """One that reads everything for the first time."""
    return Planner(
        decomposer=RuleDecomposer(DecomposeRules()),
        router=cast("Router", ByChecksum()),
        contracts=contracts,
        calendar=Today(),
        read=read_text,
    )


def message(text: str, language: str | None = None, capability: Capability | None = None) -> ChatMessage:
    context = {"amount": "much", "phone": None, "note": "n"}
    return ChatMessage(
        message=text, environment="production", language=language, capability=capability, context=context
    )


def messages(texts: Sequence[str]) -> Iterator[ChatMessage]:
    """Each text as it comes, in a language that the caller says, and for a named capability."""
    for text in texts:
        yield message(text)
        yield message(text, language="zh")
        yield message(text, language="en", capability=QUOTE)


async def plan(by: Planner, text: str) -> Plan:
    return (await by.plan(message(text))).plan


async def assert_the_same_with_and_without_memory(texts: Sequence[str]) -> None:
    remembering = planner()
    for one in messages(texts):
        fresh, first, again = [await by.plan(one) for by in (forgetful(), remembering, remembering)]
        assert fresh == first == again, one.message


async def test_texts_of_all_tests_are_understood_the_same_with_and_without_memory() -> None:
    files = Path(__file__).parents[1].glob("intents/*.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}

    await assert_the_same_with_and_without_memory(sorted(texts))


@pytest.mark.parametrize("name", ["eval", "multi"])
async def test_texts_of_a_shop_are_understood_the_same_with_and_without_memory(
    data_dir: Path, name: str
) -> None:
    rows = (data_dir / "shopdesk" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()

    await assert_the_same_with_and_without_memory([json.loads(row)["text"] for row in rows])


async def test_a_remembered_text_is_read_anew_on_another_day() -> None:
    calendar = Today()
    remembering = planner(calendar)

    days = []
    for _ in range(2):
        planned = await remembering.plan(message("since yesterday", capability=PARCEL))
        days.append(planned.plan.intents[0].inputs["date"])
        calendar.day += timedelta(days=1)

    assert days == ["2026-11-29", "2026-11-30"]


async def test_a_remembered_text_has_the_fields_that_are_declared_now() -> None:
    known = {"now": contracts(["order_number"])}
    remembering = Planner(
        decomposer=RuleDecomposer(DecomposeRules()),
        router=cast("Router", ByChecksum()),
        contracts=lambda: known["now"],
        calendar=Today(),
    )
    text = message("where is it", capability=PARCEL)

    before = await remembering.plan(text)
    known["now"] = contracts(["date"])
    after = await remembering.plan(text)

    assert [one.plan.intents[0].missing for one in (before, after)] == [("order_number",), ("date",)]


async def test_an_answer_takes_the_question_up_again_with_what_both_name() -> None:
    asked = Question(
        capability=PARCEL, text="where was my parcel yesterday", similarity=0.8, fields=("order_number",)
    )
    gone = Question(capability=Capability("gone"), text="and the other", similarity=0.9)
    session = Session(caller=CallerId("shop"), session_id="s", questions=(gone, asked))

    planned: Planned = await planner().plan(message("订单号是A123"), session)

    (intent,) = planned.plan.intents
    assert (intent.capability, intent.confidence, planned.rankings) == (PARCEL, 0.8, ())
    assert intent.inputs == {"order_number": "A123", "date": "2026-11-29"}
    assert planned.plan.language == "zh"


async def test_what_answers_no_question_is_a_message_of_its_own() -> None:
    asked = Question(capability=PARCEL, text="where is it", similarity=0.8, fields=("order_number",))
    session = Session(caller=CallerId("shop"), session_id="s", questions=(asked,))
    other = "a text that is much too long to be the bare answer to a question and names no number"

    assert await planner().plan(message(other), session) == await planner().plan(message(other))
