from dataclasses import dataclass, field

import pytest

from dispatcher.dispatch.callback import Callbacks
from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.errors import RequestError, UnavailableError
from dispatcher.identifiers import AgentId, RequestId, TaskId
from dispatcher.protocol.frames import (
    AttemptSignal,
    PartialFrame,
    ProgressFrame,
    RenewFrame,
    ResultBody,
    ResultFrame,
    StartedFrame,
)
from dispatcher.protocol.link import Settlement
from tests.dispatch.builders import accepted, newest, result

OTHER_TOKEN = "another-token-of-this-size"  # noqa: S105


@dataclass
class World:
    """One request, and what was committed for it."""

    state: RequestState = field(default_factory=accepted)
    is_down: bool = False
    committed: list[bytes] = field(default_factory=list)

    async def read(self, request_id: RequestId) -> RequestState | None:
        if self.is_down:
            raise UnavailableError("no ledger")
        return self.state if request_id == self.state.request.request_id else None

    async def commit(self, body: bytes) -> Settlement:
        self.committed.append(body)
        return Settlement.ACK

    async def post(
        self, frame: ResultFrame | AttemptSignal, *, task: str | None = None, sender: str | None = None
    ) -> Settlement:
        callbacks = Callbacks(read=self.read, on_result=self.commit)
        named = TaskId(task or self.state.tasks[0].task_id)
        who = AgentId(sender) if sender else None
        return await callbacks.accept(named, frame.model_dump_json().encode(), who)

    async def refusal(self, frame: ResultFrame | AttemptSignal, sender: str | None = None) -> str:
        with pytest.raises(RequestError) as refused:
            await self.post(frame, sender=sender)
        return refused.value.error_code

    def frame(self, **changes: object) -> ResultFrame:
        return result(newest(self.state)).model_copy(update=changes)

    def signal(self, kind: type[AttemptSignal] = RenewFrame) -> AttemptSignal:
        named = self.frame().model_dump(
            include={"request_id", "task_id", "attempt", "token", "instance_id"},
        )
        more = {"sequence": 0, "result": ResultBody(text="a piece")} if kind is PartialFrame else {}
        return kind(**{**named, **more})


@pytest.mark.parametrize("sender", [None, "a1"])
async def test_a_result_with_the_token_of_its_attempt_is_committed(sender: str | None) -> None:
    world = World()

    assert await world.post(world.frame(), sender=sender) is Settlement.ACK
    assert len(world.committed) == 1


@pytest.mark.parametrize("change", [{"token": OTHER_TOKEN}, {"attempt": 2}])
async def test_a_token_that_does_not_fit_is_refused_and_kept_as_what_it_is(change: dict[str, object]) -> None:
    world = World()

    assert await world.refusal(world.frame(**change), "a1") == "result_refused"
    assert len(world.committed) == 1, "the collector keeps it as rejected"


@pytest.mark.parametrize("kind", [StartedFrame, ProgressFrame, PartialFrame, RenewFrame])
async def test_a_signal_with_the_token_of_its_attempt_is_committed(kind: type[AttemptSignal]) -> None:
    world = World()

    assert await world.post(world.signal(kind), sender="a1") is Settlement.ACK
    assert len(world.committed) == 1


@pytest.mark.parametrize("change", [{"token": OTHER_TOKEN}, {"attempt": 2}, {"request_id": "unknown"}])
async def test_a_signal_whose_token_does_not_fit_is_refused_and_not_kept(change: dict[str, object]) -> None:
    world = World()

    assert await world.refusal(world.signal().model_copy(update=change), "a1") == "result_refused"
    assert not world.committed


async def test_another_agents_key_keeps_no_lease_alive() -> None:
    world = World()

    assert await world.refusal(world.signal(), "a2") == "result_refused"
    assert not world.committed


async def test_another_agents_key_ends_no_task_even_with_the_right_token() -> None:
    world = World()

    assert await world.refusal(world.frame(), "a2") == "result_refused"
    assert not world.committed


async def test_a_request_that_nobody_knows_is_refused_in_the_same_words() -> None:
    world = World()

    assert await world.refusal(world.frame(request_id="unknown"), "a1") == "result_refused"
    assert not world.committed


async def test_a_result_of_another_task_is_no_result_of_this_one() -> None:
    world = World()

    assert await world.post(world.frame(), task="another") is Settlement.DEAD
    assert await Callbacks(read=world.read, on_result=world.commit).accept(TaskId("t"), b"{}", None) is (
        Settlement.DEAD
    )


async def test_without_the_ledger_the_agent_is_to_post_again() -> None:
    world = World(is_down=True)

    assert await world.post(world.frame()) is Settlement.REQUEUE
