"""What a message is understood as, and that remembering texts changes nothing of it."""

import ast
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from dispatcher import records
from dispatcher.dispatch.lifecycle.request import ChatMessage, Match
from dispatcher.dispatch.lifecycle.session import Question, Session
from dispatcher.dispatch.planning import Planned, Planner
from dispatcher.identifiers import CallerId, Capability
from dispatcher.intents.decompose import RuleDecomposer
from dispatcher.intents.plan import EntityKind, Plan
from dispatcher.intents.reading import read_text
from dispatcher.intents.segment import DecomposeRules
from dispatcher.registry.repository import CapabilityContract
from dispatcher.routing.router import CapabilityScore, Ranking, Router

ORDER, PARCEL, QUOTE, CHAT = map(Capability, ("order.query", "parcel.track", "promotion.quote", "small.talk"))
FIELDS: Mapping[Capability, Mapping[str, object]] = {
    ORDER: {"order_number": {"type": "string"}, "phone": {"type": "string"}},
    PARCEL: {"order_number": {"type": "string"}, "date": {"type": "string"}, "reason": {"type": "string"}},
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
    assert planned.still_asked == (gone,)
    assert planned.plan.language == "zh"


async def test_what_answers_no_question_is_a_message_of_its_own() -> None:
    asked = Question(capability=PARCEL, text="where is it", similarity=0.8, fields=("order_number",))
    session = Session(caller=CallerId("shop"), session_id="s", questions=(asked,))
    other = "a text that is much too long to be the bare answer to a question and names no number"

    assert await planner().plan(message(other), session) == await planner().plan(message(other))


WHICH = Question(
    capability=ORDER, text="where is A123", similarity=0.8, options=((ORDER, 0.8), (PARCEL, 0.7))
)
BESIDE = Question(
    capability=Capability("gone"), text="x", similarity=0.8, options=((Capability("gone"), 0.8), (QUOTE, 0.7))
)


def asked_which(*questions: Question) -> Session:
    return Session(caller=CallerId("shop"), session_id="s", questions=questions)


async def test_the_chosen_option_gets_the_text_that_was_asked_about() -> None:
    planned = await planner().plan(message("2"), asked_which(WHICH))

    (intent,) = planned.plan.intents
    assert (intent.text, intent.capability, intent.confidence) == ("where is A123", PARCEL, 0.7)
    assert (planned.rankings, planned.plan.language) == ((), "en")


async def test_an_option_that_nobody_declares_any_more_is_no_answer() -> None:
    assert await planner().plan(message("1"), asked_which(BESIDE)) == await planner().plan(message("1"))
    planned = await planner().plan(message("1"), asked_which(BESIDE, WHICH))
    (intent,) = planned.plan.intents
    assert (intent.capability, planned.still_asked) == (ORDER, (BESIDE,))


REASON = Question(capability=PARCEL, text="send it back", similarity=0.8, fields=("reason",))
ANYTHING = Question(capability=PARCEL, text="send it back", similarity=0.8)


class Nowhere(ByChecksum):
    """Nobody can do anything: every short text may be the bare answer to a question."""

    def _rank(self, text: str) -> Ranking:
        return records.replace(super()._rank(text), in_scope=False)


@pytest.mark.parametrize("asked", [REASON, ANYTHING])
@pytest.mark.parametrize("text", ["neither", "both", "4", "都不是", "第九个", "none of them"])
async def test_what_chooses_no_option_is_no_answer_to_a_question_behind_it(
    asked: Question, text: str
) -> None:
    nowhere = replace(planner(), router=cast("Router", Nowhere()))

    planned = await nowhere.plan(message(text), asked_which(WHICH, asked))

    assert planned == await nowhere.plan(message(text))
    alone = await nowhere.plan(message(text), asked_which(ANYTHING))
    assert alone.plan.intents[0].capability == PARCEL


@pytest.mark.parametrize("asked", [REASON, ANYTHING])
@pytest.mark.parametrize("text", ["2", "no", "没有", "12", "3个", "neither"])
async def test_a_newer_question_is_answered_before_options_are_chosen_from(
    asked: Question, text: str
) -> None:
    nowhere = replace(planner(), router=cast("Router", Nowhere()))

    planned = await nowhere.plan(message(text), asked_which(asked, WHICH))

    (intent,) = planned.plan.intents
    assert (intent.capability, planned.still_asked) == (PARCEL, (WHICH,))
    assert intent.inputs.get("reason") == (text if asked is REASON else None)


async def test_what_does_not_fit_a_newer_question_chooses_an_option() -> None:
    nowhere = replace(planner(), router=cast("Router", Nowhere()))
    amount = Question(capability=QUOTE, text="a quote", similarity=0.8, fields=("amount",))

    planned = await nowhere.plan(message("2"), asked_which(amount, WHICH))

    assert (planned.plan.intents[0].capability, planned.still_asked) == (PARCEL, (amount,))


async def test_any_other_message_may_answer_a_question_beside_the_options() -> None:
    nowhere = replace(planner(), router=cast("Router", Nowhere()))

    planned = await nowhere.plan(message("the blue one by the door"), asked_which(WHICH, ANYTHING))

    assert (planned.plan.intents[0].capability, planned.still_asked) == (PARCEL, (WHICH,))


class AsGiven:
    """Ranks every text to one capability with the similarity it is given."""

    def __init__(self, similarity: float | None, **changes: object) -> None:
        best = CapabilityScore(
            capability=QUOTE, agent_cosines={}, cosine=0.7, similarity=similarity or 0.0, score=0.7
        )
        made = Ranking(
            text="",
            capabilities=() if similarity is None else (best,),
            scope_score=0.5,
            scope_floor=0.2,
            in_scope=similarity is not None,
            encoder_id="test",
            registry_version=1,
            calibration="self",
        )
        self.ranking = records.replace(made, **changes)  # type: ignore[arg-type]
        self.ranked: list[str] = []

    async def rank(self, texts: Sequence[str]) -> tuple[Ranking, ...]:
        self.ranked += texts
        return tuple(records.replace(self.ranking, text=text) for text in texts)


SAID = Session(caller=CallerId("shop"), session_id="s", topics=("order number A20260001 came broken",))


class Behind(AsGiven):
    """Has another similarity, and scope, for a text that is ranked behind a topic."""

    def __init__(self, alone: float, behind: float, *, in_scope: bool) -> None:
        super().__init__(alone, in_scope=in_scope)
        self.behind = behind

    async def rank(self, texts: Sequence[str]) -> tuple[Ranking, ...]:
        return tuple(
            self._better(ranking) if SAID.topics[0] in ranking.text else ranking
            for ranking in await super().rank(texts)
        )

    def _better(self, ranking: Ranking) -> Ranking:
        best = ranking.capabilities[0]._replace(capability=ORDER, similarity=self.behind)
        return records.replace(ranking, capabilities=(best,), in_scope=True)


@pytest.mark.parametrize("router", [Behind(0.2, 0.8, in_scope=False), Behind(0.7, 0.8, in_scope=True)])
async def test_a_message_that_means_more_behind_a_topic_is_ranked_with_it(router: Behind) -> None:
    planned = await replace(planner(), router=cast("Router", router)).plan(message("can you fix it"), SAID)

    (intent,) = planned.plan.intents
    assert (intent.text, intent.capability, intent.confidence) == ("can you fix it", ORDER, 0.8)
    assert [(one.kind, one.value, one.start, one.end) for one in intent.entities] == [
        (EntityKind.ANTECEDENT, SAID.topics[0], 0, 0),
        (EntityKind.ORDER_NUMBER, "A20260001", 0, 0),
    ]
    assert intent.inputs["order_number"] == "A20260001"
    assert [ranking.text for ranking in planned.rankings] == [f"{SAID.topics[0]} can you fix it"]
    assert router.ranked == ["can you fix it", f"{SAID.topics[0]} can you fix it"]


async def test_what_the_message_names_itself_comes_before_what_its_topic_named() -> None:
    router = Behind(0.2, 0.8, in_scope=False)
    asked = message("what about order 20260002")

    planned = await replace(planner(), router=cast("Router", router)).plan(asked, SAID)

    assert planned.plan.intents[0].inputs["order_number"] == "20260002"


@pytest.mark.parametrize("text", ["can you fix it", "please tell me where my parcel is by now"])
async def test_what_means_no_more_behind_a_topic_is_a_message_of_its_own(text: str) -> None:
    router = Behind(0.9, 0.8, in_scope=True)
    own = replace(planner(), router=cast("Router", router))

    assert await own.plan(message(text), SAID) == await own.plan(message(text))


async def test_an_answer_to_a_question_goes_on_with_nothing_else() -> None:
    asked = Question(capability=PARCEL, text="where is it", similarity=0.6)
    router = Behind(0.2, 0.8, in_scope=False)
    session = records.replace(SAID, questions=(asked,))

    planned = await replace(planner(), router=cast("Router", router)).plan(message("in the morning"), session)

    assert planned.plan.intents[0].capability == PARCEL


def described(router: AsGiven) -> Planner:
    return replace(planner(), router=cast("Router", router), semantic_bar=0.9)


DESCRIBED = records.replace(message("how much for two"), match=Match.SEMANTIC, wanted="computes discounts")


async def test_a_description_that_fits_well_enough_is_acted_on() -> None:
    router = AsGiven(0.9)

    planned = await described(router).plan(DESCRIBED)

    (intent,) = planned.plan.intents
    assert (intent.text, intent.capability, intent.confidence) == ("how much for two", QUOTE, 0.9)
    assert (planned.rankings, planned.described) == ((), "computes discounts")
    assert router.ranked == ["computes discounts"]


@pytest.mark.parametrize(
    "router",
    [AsGiven(0.89), AsGiven(None), AsGiven(1.0, in_scope=False), AsGiven(1.0, calibration="uncalibrated")],
)
async def test_any_other_description_is_out_of_scope(router: AsGiven) -> None:
    planned = await described(router).plan(DESCRIBED)

    (intent,), (ranking,) = planned.plan.intents, planned.rankings
    assert (intent.capability, ranking.in_scope, planned.described) == (None, False, "computes discounts")
