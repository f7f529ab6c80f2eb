"""What becomes of frames that were given up, over a real ledger."""

from dispatcher.channel.channel import Dead, DeadReason
from dispatcher.dispatch.lifecycle.ledger import DeadQuery
from dispatcher.dispatch.lifecycle.request import TaskStatus
from dispatcher.dispatch.lifecycle.task_frame import due_of, task_frame
from dispatcher.dispatch.undertaker import Undertaker
from dispatcher.protocol.link import Settlement
from tests.dispatch.builders import newest
from tests.dispatch.conftest import Chain


def undertaker(chain: Chain) -> Undertaker:
    return Undertaker(books=chain.books, assigner=chain.by)


async def dead_attempt(chain: Chain) -> tuple[Dead, str]:
    state = (await chain.accept()).after
    frame = task_frame(due_of(state, newest(state), 0), "results")
    body = frame.model_dump_json().encode()
    return Dead(source="a1", body=body, reason=DeadReason.DELIVERY_LIMIT), state.request.request_id


async def test_a_known_tasks_frame_ends_its_task_and_is_kept_nowhere_else(chain: Chain) -> None:
    dead, _ = await dead_attempt(chain)

    assert await undertaker(chain).on_dead(dead) is Settlement.ACK

    (entry,) = await chain.ledger.dead(DeadQuery())
    assert (entry.frame, entry.status, entry.error_code) == (None, TaskStatus.FAILED, "delivery_limit")


async def test_what_belongs_to_no_task_is_kept_as_it_came(chain: Chain) -> None:
    junk = Dead(source="results", body=b"\xff{", reason=DeadReason.REJECTED)

    assert await undertaker(chain).on_dead(junk) is Settlement.ACK

    (entry,) = await chain.ledger.dead(DeadQuery())
    assert entry.frame is not None
    assert (entry.frame.source, entry.frame.size_bytes, entry.frame.body) == ("results", 2, "\ufffd{")


async def test_a_frame_whose_task_cannot_be_changed_is_kept_as_a_frame(chain: Chain) -> None:
    dead, request_id = await dead_attempt(chain)
    chain.ledger.refused = request_id  # type: ignore[assignment]

    assert await undertaker(chain).on_dead(dead) is Settlement.ACK

    assert [entry.frame is not None for entry in await chain.ledger.dead(DeadQuery())] == [True]
