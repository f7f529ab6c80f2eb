from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import PartialRecord, RequestState
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.ledger_requests import accepted


def piece(state: RequestState, position: int, attempt: int, sequence: int) -> PartialRecord:
    return PartialRecord(
        task_id=state.tasks[position].task_id,
        request_id=state.request.request_id,
        attempt=attempt,
        sequence=sequence,
        document=f'{{"text": "{attempt}.{sequence}", "data": {{}}}}',
    )


async def say(ledger: SqlLedger, said: PartialRecord) -> None:
    await ledger.update(said.request_id, lambda state, _: Step(state=state, partials=(said,)))


async def test_pieces_are_read_page_by_page_in_their_order(ledger: SqlLedger):
    state = await accepted(ledger)
    keys = [(2, 1), (1, 10), (1, 2), (2, 0), (1, 9)]
    for attempt, sequence in keys:
        for position in (1, 0):
            await say(ledger, piece(state, position, attempt, sequence))
    own = state.request.request_id, state.tasks[0].task_id

    first = await ledger.read_partials(*own, (0, 0), 2)
    rest = await ledger.read_partials(*own, (1, 10), 10)
    none = await ledger.read_partials(*own, (2, 2), 10)

    assert [(p.attempt, p.sequence) for p in first] == [(1, 2), (1, 9)]
    assert rest == tuple(piece(state, 0, *key) for key in [(1, 10), (2, 0), (2, 1)])
    assert none == ()
