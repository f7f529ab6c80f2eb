"""What a session remembers, whichever request of it changed what."""

import asyncio
import json

from sqlalchemy import event, text

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.ledger import Change, Decide, Offer, Step
from dispatcher.dispatch.lifecycle.request import PartialRecord, RequestState
from dispatcher.dispatch.lifecycle.session import MAX_TOPICS, Question, SessionChange
from dispatcher.identifiers import CallerId, Capability
from dispatcher.records import replace
from dispatcher.store.engine import Database, open_engine
from dispatcher.store.group_commit import GroupRules
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.retention import forget, prune
from dispatcher.store.sessions import write_sessions
from tests.conformance.store.ledger_requests import CALLER, accepted, finish, offer_of, replica

LIMIT_S = 5


class HandClock(SystemClock):
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


QUESTION = Question(
    capability=Capability("order.query"),
    text="我的订单到哪了",
    similarity=0.8,
    fields=("order_number",),
    inputs={"amount": 9.5},
)


def change(seen: int = 0, **fields: object) -> SessionChange:
    made = SessionChange(caller=CALLER, session_id="session-1", user_id="user-1", seen_version=seen)
    return replace(made, **fields)  # type: ignore[arg-type]


def remembering(wanted: SessionChange) -> Decide:
    def decide(state: RequestState, now: int) -> Step:
        step = finish()(state, now)
        return replace(step, session=wanted)

    return decide


async def test_an_unknown_session_is_empty(ledger: SqlLedger):
    session = await ledger.read_session(CALLER, "nothing yet")

    assert (session.version, session.values(), session.questions) == (0, {}, ())


async def test_what_a_step_remembers_is_there_for_the_next_request(ledger: SqlLedger):
    state = await accepted(ledger)

    await ledger.update(
        state.request.request_id, remembering(change(update={"城市": "上海"}, asked=(QUESTION,)))
    )

    session = await ledger.read_session(CALLER, "session-1")
    ended = await ledger.read(state.request.request_id)
    assert (session.version, session.values(), session.questions) == (1, {"城市": "上海"}, (QUESTION,))
    assert ended is not None
    assert ended.request.finished_ms is not None


async def test_topics_are_there_for_the_next_request(ledger: SqlLedger):
    said = [await accepted(ledger) for _ in range(MAX_TOPICS + 1)]

    for number, state in enumerate(said):
        await ledger.update(state.request.request_id, remembering(change(topic=f"耳机“{number}”坏了\0")))

    topics = (await ledger.read_session(CALLER, "session-1")).topics
    assert topics == tuple(f"耳机“{number}”坏了\0" for number in range(1, MAX_TOPICS + 1))


async def test_a_session_of_an_earlier_release_has_no_topics_until_one_is_named(
    database: Database, ledger: SqlLedger
):
    async with database.writing() as connection:
        await connection.execute(
            text(
                "INSERT INTO sessions (caller, session_id, version, context, questions, changed_ms)"
                " VALUES (:caller, 'session-1', 3, '{}', '[]', 0)"
            ),
            {"caller": CALLER},
        )

    before = await ledger.read_session(CALLER, "session-1")
    state = await accepted(ledger)
    await ledger.update(state.request.request_id, remembering(change(3, topic="我的耳机坏了")))

    assert (before.version, before.topics) == (3, ())
    assert (await ledger.read_session(CALLER, "session-1")).topics == ("我的耳机坏了",)


async def test_sessions_of_other_callers_are_other_sessions(ledger: SqlLedger):
    state = await accepted(ledger)

    await ledger.update(state.request.request_id, remembering(change(update={"city": "上海"})))

    assert (await ledger.read_session(CallerId("other"), "session-1")).version == 0


async def test_a_request_can_change_its_session_as_it_is_accepted(ledger: SqlLedger):
    offer = offer_of()
    asking = replace(offer, build=lambda now: replace(offer.build(now), session=change(asked=(QUESTION,))))

    await ledger.accept(asking)

    assert (await ledger.read_session(CALLER, "session-1")).questions == (QUESTION,)


async def test_requests_that_change_one_session_at_once_lose_nothing(shared_postgres: str):
    async with replica(shared_postgres) as one, replica(shared_postgres) as other:
        states = [await accepted(ledger) for ledger in (one, other) * 10]
        async with asyncio.TaskGroup() as group:
            for number, state in enumerate(states):
                rule = remembering(change(update={f"key-{number}": number}))
                group.create_task((one, other)[number % 2].update(state.request.request_id, rule))

        session = await one.read_session(CALLER, "session-1")

    assert session.values() == {f"key-{number}": number for number in range(20)}
    assert session.version == 20


async def test_a_value_that_changed_since_it_was_seen_stays(ledger: SqlLedger):
    first, second = [await accepted(ledger) for _ in range(2)]
    await ledger.update(first.request.request_id, remembering(change(update={"city": "上海"})))

    await ledger.update(second.request.request_id, remembering(change(update={"city": "北京", "size": "L"})))

    assert (await ledger.read_session(CALLER, "session-1")).values() == {"city": "上海", "size": "L"}


async def test_sessions_end_by_age_and_with_their_user(database: Database, ledger: SqlLedger):
    state = await accepted(ledger)
    said = change(update={"city": "上海"}, topic="我的耳机坏了")
    await ledger.update(state.request.request_id, remembering(said))

    kept = await prune(database, {"sessions": 1})
    still_there = await ledger.read_session(CALLER, "session-1")
    await forget(database, "user-1")

    assert kept == {"sessions": 0}
    assert (still_there.version, still_there.topics) == (1, ("我的耳机坏了",))
    left = await ledger.read_session(CALLER, "session-1")
    assert (left.version, left.topics) == (0, ())


async def test_a_session_that_goes_to_another_user_keeps_nothing_that_would_have_to_be_forgotten(
    database: Database, ledger: SqlLedger
):
    theirs = change(update={"city": "上海"}, topic="我的耳机坏了", asked=(QUESTION,))
    async with database.writing() as connection:
        await write_sessions(connection, [theirs, change(1, user_id="user-2", topic="查快递")])

    await forget(database, "user-1")
    kept = await ledger.read_session(CALLER, "session-1")
    await forget(database, "user-2")

    assert (kept.user_id, kept.context, kept.questions, kept.topics) == ("user-2", {}, (), ("查快递",))
    assert (await ledger.read_session(CALLER, "session-1")).version == 0


async def test_sessions_are_written_in_as_many_statements_as_one(database: Database, ledger: SqlLedger):
    sessions = [change(session_id=f"session-{number}") for number in range(20)]
    statements: list[str] = []
    engine = database.writes.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(str(args[2])))

    async with database.writing() as connection:
        await write_sessions(connection, [replace(one, topic=t) for t in ("one", "two") for one in sessions])

    written = [text.split()[0] for text in statements if "sessions" in text]
    found = [await ledger.read_session(CALLER, one.session_id) for one in sessions]
    assert written == ["INSERT", "SELECT", "UPDATE"]
    assert {(session.version, session.topics) for session in found} == {(2, ("one", "two"))}


async def test_a_session_that_cannot_be_remembered_harms_no_request_and_no_other_session(ledger: SqlLedger):
    def offered(session: SessionChange) -> Offer:
        offer = offer_of()
        return replace(offer, build=lambda now: replace(offer.build(now), session=session))

    class Unforeseen:
        """Nothing that a document could hold."""

    async with asyncio.TaskGroup() as group:
        bad = group.create_task(ledger.accept(offered(change(update={"city": Unforeseen()}))))
        good = group.create_task(ledger.accept(offered(change(session_id="session-2", topic="查快递"))))

    assert isinstance(bad.result(), Change)
    assert isinstance(good.result(), Change)
    assert (await ledger.read_session(CALLER, "session-1")).version == 0
    assert (await ledger.read_session(CALLER, "session-2")).topics == ("查快递",)


async def test_who_waits_for_a_session_holds_up_nobody_without_one(shared_postgres: str):
    asking = offer_of()
    with_session = replace(
        asking, build=lambda now: replace(asking.build(now), session=change(topic="查快递"))
    )
    async with replica(shared_postgres) as ledger, open_engine(shared_postgres) as database:
        async with (
            asyncio.timeout(LIMIT_S),
            asyncio.TaskGroup() as group,
            database.writing() as connection,
        ):
            await write_sessions(connection, [change(update={"city": "上海"})])
            waiting = group.create_task(ledger.accept(with_session))
            others = [await ledger.accept(offer_of()) for _ in range(3)]
            is_answered_early = waiting.done()
        session = await ledger.read_session(CALLER, "session-1")

    assert all(isinstance(other, Change) for other in others)
    assert not is_answered_early
    assert (session.values(), session.topics) == ({"city": "上海"}, ("查快递",))


async def test_who_comes_while_a_session_has_been_locked_for_long_loses_no_change(shared_postgres: str):
    def offered(topic: str) -> Offer:
        offer = offer_of()
        return replace(offer, build=lambda now: replace(offer.build(now), session=change(topic=topic)))

    clock = HandClock()
    async with replica(shared_postgres, clock) as ledger, open_engine(shared_postgres) as database:
        async with (
            asyncio.timeout(LIMIT_S),
            asyncio.TaskGroup() as group,
            database.writing() as connection,
        ):
            await write_sessions(connection, [change(topic="one")])
            for topic in ("two", "three"):
                group.create_task(ledger.accept(offered(topic)))
                # Others' accepts, one after the other: by their end that one waits for the session.
                for _ in range(3):
                    await ledger.accept(offer_of())
                clock.at += GroupRules().stuck_s
        session = await ledger.read_session(CALLER, "session-1")

    assert session.topics == ("one", "two", "three")


async def test_pieces_of_a_result_are_kept_once(ledger: SqlLedger):
    state = await accepted(ledger)
    task_id = state.tasks[0].task_id
    piece = PartialRecord(
        task_id=task_id,
        request_id=state.request.request_id,
        attempt=1,
        sequence=0,
        document='{"text":"好","data":{}}',
    )

    for _ in range(2):
        await ledger.update(
            state.request.request_id,
            lambda now_state, _now: Step(state=now_state, partials=(piece, replace(piece, sequence=1))),
        )

    found = await ledger.read_partials(state.request.request_id, task_id, (0, 0), 10)
    assert found == (piece, replace(piece, sequence=1))


async def test_a_question_with_options_reads_back_and_one_without_is_stored_as_before(
    ledger: SqlLedger, database: Database
):
    which = replace(QUESTION, options=((Capability("order.query"), 0.9), (Capability("b"), 0.8)))
    async with database.writing() as connection:
        await write_sessions(connection, [change(asked=(QUESTION, which))])

    async with database.reading() as connection:
        stored = (await connection.execute(text("SELECT questions FROM sessions"))).scalar_one()
    session = await ledger.read_session(CALLER, "session-1")

    assert session.questions == (QUESTION, which)
    assert set(json.loads(stored)[0]) == {"capability", "text", "similarity", "fields", "inputs"}
