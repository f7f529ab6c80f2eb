"""What a group of offers gets where the connection broke and the group was sent twice."""

import pytest

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.ledger import KeyedRequest, Offer, Step
from dispatcher.dispatch.lifecycle.request import Request, RequestState, RequestStatus
from dispatcher.dispatch.lifecycle.session import SessionChange
from dispatcher.identifiers import CallerId, ReplicaId, RequestId
from dispatcher.store.accepts import Accepted, Accepts, NotAccepted
from dispatcher.store.changes import ChangeSet
from dispatcher.store.database_time import DatabaseTime
from dispatcher.store.direct import Written
from dispatcher.store.recent import RecentStates

NOW = 1_000_000


class Writer:
    """Stores the requests it is told to store."""

    def __init__(self) -> None:
        self.stored: frozenset[RequestId] = frozenset()
        self.is_repeated = False

    async def insert(self, changes: ChangeSet) -> Written:
        assert any(changes.rows())
        return Written(request_ids=self.stored, now_ms=NOW, is_repeated=self.is_repeated)

    async def update(self, changes: ChangeSet) -> Written:
        raise AssertionError(changes)

    async def read_now(self) -> int:
        return NOW

    async def close(self) -> None:
        pass


def offer(name: str, key: str | None = None, session: SessionChange | None = None) -> Offer:
    request_id, caller = RequestId(name), CallerId("shop")

    def build(now: int) -> Step:
        request = Request(
            request_id=request_id,
            caller=caller,
            replica=ReplicaId("r1"),
            message="hello",
            language="en",
            environment="production",
            session_id=None,
            user_id=None,
            context={},
            idempotency_key=key,
            body_digest=name,
            status=RequestStatus.OPEN,
            answer=None,
            created_ms=now,
            deadline_ms=now + 1,
        )
        state = RequestState(request=request, intents=(), tasks=(), attempts=())
        return Step(state=state, session=session)

    return Offer(request_id=request_id, caller=caller, idempotency_key=key, body_digest=name, build=build)


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def accepts(writer: Writer) -> Accepts:
    time = DatabaseTime(SystemClock())
    return Accepts(writer=writer, recent=RecentStates(10), time=time)


async def test_what_was_stored_is_a_change_at_the_databases_time(writer: Writer, accepts: Accepts):
    writer.stored = frozenset({RequestId("a")})

    (answer,) = await accepts.apply([offer("a")])

    assert isinstance(answer, Accepted)
    assert answer.change.now_ms >= NOW
    assert accepts.recent.knows(RequestId("a"))


async def test_of_one_key_the_first_offer_is_stored_and_the_next_told_of_it(writer: Writer, accepts: Accepts):
    writer.stored = frozenset({RequestId("a")})

    first, second = await accepts.apply([offer("a", "k"), offer("b", "k")])

    assert isinstance(first, Accepted)
    assert second == KeyedRequest(request_id=RequestId("a"), body_digest="a")


async def test_what_a_session_has_to_remember_is_told_of_what_was_stored_alone(
    writer: Writer, accepts: Accepts
):
    said = SessionChange(caller=CallerId("shop"), session_id="s", user_id=None, seen_version=0, topic="one")
    writer.stored = frozenset({RequestId("a"), RequestId("b")})

    answers = await accepts.apply([offer("a", "k", said), offer("b"), offer("c", "k", said)])

    assert [one.session if isinstance(one, Accepted) else one for one in answers] == [
        said,
        None,
        KeyedRequest(request_id=RequestId("a"), body_digest="a"),
    ]


@pytest.mark.parametrize(
    ("is_repeated", "expected"), [(False, NotAccepted.TAKEN), (True, NotAccepted.UNSURE)]
)
async def test_what_was_not_stored_may_be_our_own_where_it_was_sent_twice(
    writer: Writer, accepts: Accepts, is_repeated: bool, expected: NotAccepted
):
    writer.is_repeated = is_repeated

    answers = await accepts.apply([offer("a", "k")])

    assert answers == [expected]
    assert not accepts.recent.knows(RequestId("a"))
