import pytest

from dispatcher.dispatch.judging import Judging
from dispatcher.dispatch.lifecycle.judgement import Judgement, Verdict
from dispatcher.dispatch.lifecycle.request import RequestStatus, TaskStatus
from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.records import replace
from dispatcher.registry.access import Identity, Role
from tests.gateway.stubs import request_state

ORDER, REFUND = Capability("order.query"), Capability("refund")
RIGHT = Judgement(position=0, verdict=Verdict.RIGHT)


class Kept:
    """Implements `JudgementRepository`."""

    def __init__(self):
        self.given = []

    async def record(self, given):
        self.given.append(given)


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def take(kept):
    """Its part was ranked to ORDER; `chosen` is what it went to, `status` how it ended."""
    judging = Judging(repository=kept, known=lambda: {ORDER, REFUND})

    async def call(*judgements, grants=None, chosen=ORDER, status=TaskStatus.COMPLETED):
        state = request_state("r1", "alice", RequestStatus.COMPLETED)
        task = replace(state.tasks[0], capability=chosen, status=status)
        identity = Identity(role=Role.ADMIN, subject="boss", grants=grants)
        await judging.take(replace(state, tasks=(task,)), judgements, identity)

    return call


def _rather(capability):
    return Judgement(position=0, verdict=Verdict.WRONG_CAPABILITY, capability=capability)


async def test_what_is_said_is_kept_for_the_requests_caller_with_who_said_it(take, kept):
    wrong = Judgement(position=0, verdict=Verdict.WRONG_CAPABILITY, capability=REFUND)

    await take(wrong)

    (given,) = kept.given
    assert (given.request_id, given.caller, given.given_by) == ("r1", "alice", "boss")
    assert given.judgements == (wrong,)


@pytest.mark.parametrize(
    ("judgements", "code"),
    [
        ([RIGHT, RIGHT], "judged_twice"),
        ([Judgement(position=7, verdict=Verdict.RIGHT)], "unknown_intent"),
        ([Judgement(position=0, verdict=Verdict.RIGHT, capability=REFUND)], "contradictory_feedback"),
        (
            [Judgement(position=0, verdict=Verdict.WRONG_CAPABILITY, capability=ORDER)],
            "contradictory_feedback",
        ),
        (
            [Judgement(position=0, verdict=Verdict.WRONG_CAPABILITY, capability=Capability("unheard.of"))],
            "unknown_capability",
        ),
    ],
)
async def test_what_can_not_be_so_is_refused_and_nothing_is_kept(take, kept, judgements, code):
    with pytest.raises(RequestError) as refusal:
        await take(*judgements)

    assert refusal.value.error_code == code
    assert kept.given == []


@pytest.mark.parametrize("hidden", [ORDER, REFUND, Capability("unheard.of")])
async def test_what_is_not_granted_is_answered_like_what_is_not_there(take, kept, hidden):
    """ORDER is what the part was about: a caller without a grant for it must not learn that."""
    with pytest.raises(RequestError) as refusal:
        await take(
            Judgement(position=0, verdict=Verdict.WRONG_CAPABILITY, capability=hidden), grants=frozenset()
        )

    assert refusal.value.error_code == "unknown_capability"
    assert kept.given == []


async def test_where_a_near_one_or_the_fallback_got_it_the_right_answer_is_what_it_was_ranked_to(take, kept):
    await take(_rather(ORDER), chosen=REFUND)

    (given,) = kept.given
    assert given.judgements == (_rather(ORDER),)


async def test_what_it_went_to_is_no_correction(take, kept):
    with pytest.raises(RequestError) as refusal:
        await take(_rather(REFUND), chosen=REFUND)

    assert refusal.value.error_code == "contradictory_feedback"
    assert kept.given == []


@pytest.mark.parametrize("status", [TaskStatus.CLARIFY, TaskStatus.OUT_OF_SCOPE, TaskStatus.HANDED_OFF])
async def test_of_a_part_that_belongs_to_no_capability_each_may_be_right(take, kept, status):
    await take(_rather(ORDER), status=status)

    assert len(kept.given) == 1
