"""What may have been sent before and must not run twice stays with its agent (I2)."""

from dataclasses import replace

import pytest

from dispatcher import records
from dispatcher.channel.http_reply import ON_BEHALF
from dispatcher.channel.in_process import InProcessChannel
from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.assign import AttemptRules
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.dispatch.outbox import Outbox
from dispatcher.dispatch.relay import Relay
from dispatcher.errors import DeliveryError, NotSentError, OutcomeUnknownError, RefusedError
from dispatcher.identifiers import AgentId, ReplicaId
from dispatcher.protocol.frames import ResultStatus, TaskFrame
from tests.dispatch.builders import NOW, Agents, accepted, assigner, newest, published, result
from tests.dispatch.conftest import Chain


class Noting(InProcessChannel):
    """Writes down which tasks were bound to their agent, and ends the sends as `ends` say; then takes all."""

    def __init__(self, *ends: DeliveryError) -> None:
        super().__init__()
        self.bound: list[bool] = []
        self._ends = list(ends)

    async def send(self, agent_id: AgentId, task: TaskFrame, *, bound: bool = False) -> None:
        self.bound.append(bound)
        if self._ends:
            raise self._ends.pop(0)

    def is_ready(self) -> bool:
        return True


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_task_is_bound_where_an_earlier_claim_may_have_sent_it(
    chain: Chain, idempotent: bool
) -> None:
    channel = Noting()
    relay = replace(chain.relay, channel=channel)
    for_no_time = AttemptRules(claim_ms=0)
    by = assigner(Agents("a1", idempotent=idempotent), loads=chain.loads, rules=for_no_time)

    await chain.accept(by=by)
    await relay.publish_next()
    await chain.accept(by=by)
    await chain.outbox.take()
    assert await relay.claim() == 1
    await relay.publish_next()

    assert channel.bound == [False, not idempotent]


def _another_replica(chain: Chain, channel: InProcessChannel) -> Relay:
    outbox = Outbox(replica=ReplicaId("r2"), limit=10, clock=SystemClock())
    return replace(
        chain.relay,
        outbox=outbox,
        books=replace(chain.books, outbox=outbox),
        channel=channel,
        assigner=records.replace(chain.by, replica=ReplicaId("r2")),
    )


@pytest.mark.parametrize("idempotent", [True, False])
async def test_what_a_replica_may_have_sent_before_it_died_does_not_move_when_another_is_refused(
    chain: Chain, idempotent: bool
) -> None:
    agents = Agents("a1", "a2", idempotent=idempotent)
    before = assigner(agents, loads=chain.loads, rules=AttemptRules(claim_ms=0))
    other = _another_replica(chain, Noting(RefusedError("full")))
    other = replace(other, assigner=records.replace(other.assigner, choose=agents))

    change = await chain.accept(by=before)
    await chain.outbox.take()
    assert await other.claim() == 1
    await other.publish_next()

    state = await chain.ledger.read(change.after.request.request_id)
    assert state is not None
    assert [attempt.agent_id for attempt in state.attempts] == (["a1", "a2"] if idempotent else ["a1"])
    assert newest(state).status is AttemptStatus.DUE


@pytest.mark.parametrize(
    ("end", "is_bound"), [(NotSentError("no broker"), False), (OutcomeUnknownError("no confirm"), True)]
)
async def test_a_task_that_waited_for_a_broker_in_vain_was_not_sent(
    chain: Chain, end: DeliveryError, is_bound: bool
) -> None:
    """Only the claim that surely sent nothing leaves its task free to go elsewhere."""
    for_no_time = AttemptRules(claim_ms=0)
    by = assigner(Agents("a1", idempotent=False), loads=chain.loads, rules=for_no_time)
    channel = Noting(end)
    ours, other = replace(chain.relay, channel=channel), _another_replica(chain, channel)

    await chain.accept(by=by)
    await ours.publish_next()
    assert await other.claim() == 1
    await other.publish_next()

    assert channel.bound == [False, is_bound]


@pytest.mark.parametrize(
    ("idempotent", "claimed_by", "instance_id", "moves"),
    [
        (False, "r1", ON_BEHALF, True),
        (False, "r2", ON_BEHALF, False),
        (False, None, ON_BEHALF, False),
        (False, "r2", "the agent's own", True),
        (True, "r2", ON_BEHALF, True),
    ],
)
def test_that_our_call_did_not_start_it_says_nothing_of_a_later_sending(
    idempotent: bool, claimed_by: str | None, instance_id: str, moves: bool
) -> None:
    by = assigner(Agents("a1", "a2", idempotent=idempotent))
    state = _claimed(published(accepted(by=by)), claimed_by)
    busy = result(newest(state), ResultStatus.BUSY, instance_id=instance_id)

    after = settle(state, NOW + 1, busy, by).state

    assert [attempt.agent_id for attempt in after.attempts] == (["a1", "a2"] if moves else ["a1"])
    assert after.attempts[0].status is (AttemptStatus.NOT_STARTED if moves else AttemptStatus.PUBLISHED)


def _claimed(state: RequestState, replica: str | None) -> RequestState:
    by = None if replica is None else ReplicaId(replica)
    return records.replace(
        state, attempts=tuple(records.replace(one, claimed_by=by) for one in state.attempts)
    )
