from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import Capability
from dispatcher.intents.assemble import RankedPiece, build_plan
from dispatcher.intents.input_field import InputField, input_fields
from dispatcher.intents.plan import Entity, EntityKind, Piece
from dispatcher.records import replace

OPTIONAL_NUMBER: dict[str, object] = {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None}


def _schema(
    capability: str, properties: dict[str, object], *required: str
) -> tuple[Capability, tuple[InputField, ...]]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Capability(capability), input_fields(schema)


def _piece(capability: str | None, start: int = 0, end: int = 10) -> RankedPiece:
    name = Capability(capability) if capability else None
    return RankedPiece(
        piece=Piece(text="x" * (end - start), start=start, end=end), capability=name, similarity=0.8
    )


def _entity(kind: EntityKind, value: str | float, start: int) -> Entity:
    return Entity(kind=kind, text="xx", value=value, start=start, end=start + 2)


def _plan(pieces, *schemas, entities=(), context=None):
    return build_plan(
        pieces,
        fields=dict(schemas),
        entities=entities,
        context=context or {},
        language="zh",
    )


ORDER = _schema("order", {"order_number": {"type": "string"}})
PROMOTION = _schema("promotion", {"amount": {**OPTIONAL_NUMBER, "x-from": "order/amount"}})


def test_a_field_waits_for_the_source_its_schema_names():
    plan = _plan([_piece("order", 0, 10), _piece("promotion", 10, 20)], ORDER, PROMOTION)

    assert [intent.waits_for for intent in plan.intents] == [frozenset(), {0}]
    assert [(link.field, link.required) for link in plan.intents[1].links] == [("amount", False)]


def test_the_source_may_come_later_in_the_text():
    plan = _plan([_piece("promotion", 0, 10), _piece("order", 10, 20)], ORDER, PROMOTION)

    assert [intent.waits_for for intent in plan.intents] == [{1}, frozenset()]


def test_equal_names_alone_never_link():
    plan = _plan(
        [_piece("order"), _piece("shop", 10, 20)], ORDER, _schema("shop", {"amount": {"type": "number"}})
    )

    assert [intent.links for intent in plan.intents] == [(), ()]


def test_a_field_the_caller_gave_waits_for_nobody():
    plan = _plan([_piece("order"), _piece("promotion", 10, 20)], ORDER, PROMOTION, context={"amount": 99})

    assert plan.intents[1].inputs == {"amount": 99}
    assert plan.intents[1].links == ()


def test_a_null_or_misfit_from_the_caller_is_not_given():
    for value in (None, "ninety-nine"):
        plan = _plan([_piece("promotion")], PROMOTION, context={"amount": value})

        assert plan.intents[0].inputs == {}


def test_a_field_an_entity_fills_waits_for_nobody():
    amount = _entity(EntityKind.AMOUNT, 300.0, 12)

    plan = _plan([_piece("order"), _piece("promotion", 10, 20)], ORDER, PROMOTION, entities=[amount])

    assert plan.intents[1].inputs == {"amount": 300.0}
    assert (plan.intents[0].entities, plan.intents[1].entities) == ((), (amount,))


def test_the_entity_inside_the_piece_comes_before_others():
    entities = [_entity(EntityKind.ORDER_NUMBER, "A1", 2), _entity(EntityKind.ORDER_NUMBER, "B2", 12)]

    plan = _plan([_piece("order", 0, 10), _piece("order", 10, 20)], ORDER, entities=entities)

    assert [intent.inputs for intent in plan.intents] == [{"order_number": "A1"}, {"order_number": "B2"}]


def test_an_entity_elsewhere_fills_a_field_only_if_it_is_the_only_one():
    one = [_entity(EntityKind.ORDER_NUMBER, "A1", 30)]
    two = [*one, _entity(EntityKind.ORDER_NUMBER, "B2", 40)]

    assert _plan([_piece("order")], ORDER, entities=one).intents[0].inputs == {"order_number": "A1"}
    assert _plan([_piece("order")], ORDER, entities=two).intents[0].inputs == {}


def test_the_entity_kind_may_be_named_by_the_schema():
    schema = _schema("call", {"mobile": {"type": "string", "x-entity": "phone"}})

    plan = _plan([_piece("call")], schema, entities=[_entity(EntityKind.PHONE, "+8613812345678", 2)])

    assert plan.intents[0].inputs == {"mobile": "+8613812345678"}


def test_an_entity_that_does_not_fit_the_field_is_not_given():
    schema = _schema("pay", {"amount": {"type": "string"}}, "amount")

    plan = _plan([_piece("pay")], schema, entities=[_entity(EntityKind.AMOUNT, 20.0, 2)])

    assert (plan.intents[0].inputs, plan.intents[0].missing) == ({}, ("amount",))


def test_a_required_field_nobody_can_give_is_missing():
    schema = _schema("refund", {"reason": {"x-from": "survey/reason"}, "note": {}}, "reason")

    plan = _plan([_piece("refund")], schema)

    assert plan.intents[0].missing == ("reason",)


def test_every_missing_field_says_what_to_ask_for():
    number = {"type": "string", "description": "Which order is it?"}
    schema = _schema(
        "refund", {"order_number": number, "refund_reason": {}, "note": {}}, "order_number", "refund_reason"
    )

    (intent,) = _plan([_piece("refund")], schema).intents

    assert intent.missing == ("order_number", "refund_reason")
    assert intent.labels == ("Which order is it?", "refund reason")


def test_a_required_field_that_lost_its_source_to_a_cycle_is_missing():
    first = _schema("a", {"f": {"x-from": "b/x"}}, "f")
    second = _schema("b", {"g": {"x-from": "a/x"}}, "g")

    plan = _plan([_piece("a"), _piece("b", 10, 20)], first, second)

    assert [intent.missing for intent in plan.intents] == [("f",), ()]
    assert [intent.waits_for for intent in plan.intents] == [frozenset(), {0}]


def test_an_intent_out_of_scope_or_without_a_schema_stays_in_the_plan():
    plan = _plan([_piece(None), _piece("unknown", 10, 20)])

    assert [(i.position, i.capability, i.inputs, i.missing) for i in plan.intents] == [
        (0, None, {}, ()),
        (1, "unknown", {}, ()),
    ]
    assert (plan.language, plan.intents[0].confidence) == ("zh", 0.8)


NAMES = st.sampled_from("abcd")
FIELD = st.fixed_dictionaries({"x-from": st.lists(st.builds("{}/x".format, NAMES), max_size=3)})


@given(
    st.lists(NAMES | st.none(), min_size=1, max_size=8),
    st.dictionaries(
        NAMES, st.tuples(st.dictionaries(st.sampled_from("pqr"), FIELD), st.lists(st.sampled_from("pqr")))
    ),
)
def test_a_plan_keeps_the_order_of_the_text_and_has_no_cycle(capabilities, declared):
    schemas = [_schema(name, properties, *required) for name, (properties, required) in declared.items()]
    pieces = [_piece(name, 10 * at, 10 * at + 10) for at, name in enumerate(capabilities)]

    intents = _plan(pieces, *schemas).intents

    assert [intent.position for intent in intents] == list(range(len(pieces)))
    done: set[int] = set()
    while ready := {i.position for i in intents if i.position not in done and i.waits_for <= done}:
        done |= ready
    assert len(done) == len(intents)


def test_what_a_piece_refers_to_goes_with_it_and_names_its_entities():
    ours, other = _entity(EntityKind.ORDER_NUMBER, "A1", 2), _entity(EntityKind.ORDER_NUMBER, "B2", 12)
    before = Entity(kind=EntityKind.ANTECEDENT, text="x" * 10, value="x" * 10, start=0, end=10)
    first, second = _piece("order", 10, 20), _piece("order", 20, 30)
    referring = replace(second, piece=replace(second.piece, antecedent=before))

    plan = _plan([first, referring], ORDER, entities=(ours, other))

    assert [intent.inputs for intent in plan.intents] == [{"order_number": "B2"}, {"order_number": "A1"}]
    assert [intent.entities for intent in plan.intents] == [(other,), (before,)]
