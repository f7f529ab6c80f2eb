"""What an instance logs of its runs: one line for each that ended, and none of the person's words."""

import asyncio
import logging

import pytest

from dispatcher.sdk.reply import BusinessError
from tests.sdk.stub_link import StubLink, task_frame
from tests.sdk.working import Work, handled, intake_of


def facts(key: str = "request-1:0", **more: object) -> dict[str, object]:
    return {
        "agent_id": "tester",
        "capability": "work.do",
        "request_id": "request-1",
        "task_id": f"task-{key}",
        "attempt": 1,
        **more,
    }


def logged(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    """The facts of every line of that event."""
    usual = vars(logging.makeLogRecord({})).keys() | {"message", "asctime", "taskName"}
    lines = [record for record in caplog.records if record.getMessage() == event]
    return [{name: value for name, value in vars(line).items() if name not in usual} for line in lines]


@pytest.fixture(autouse=True)
def _at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="dispatcher.sdk")


async def test_an_ended_run_is_one_line_and_its_replay_another(caplog):
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame())
        await handled(intake, task_frame(attempt=2))

    (ended,) = logged(caplog, "task.ended")
    elapsed_ms = ended.pop("elapsed_ms")
    assert isinstance(elapsed_ms, int)
    assert elapsed_ms >= 0
    assert ended == facts(status="success", error_code=None)
    assert logged(caplog, "task.replayed") == [facts(attempt=2, status="success", error_code=None)]


async def test_a_line_says_how_a_run_failed_and_holds_no_words_of_the_answer(caplog):
    work, link = Work(), StubLink()

    def sold_out() -> str:
        raise BusinessError("No lamps for Ada.", "sold_out")

    work.agent.handler("work.sell", description="Sells.")(sold_out)
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.sell"))

    (ended,) = logged(caplog, "task.ended")
    assert (ended["capability"], ended["status"], ended["error_code"]) == ("work.sell", "success", "sold_out")
    assert "Ada" not in str(ended)


async def test_a_run_past_its_budget_is_one_line_once_it_has_really_ended(caplog):
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.block", budget_ms=50)))
        await link.result()
        assert logged(caplog, "task.ended") == []
        work.let_go.set()

    assert [line["status"] for line in logged(caplog, "task.ended")] == ["success"]
    assert [line["agent_id"] for line in logged(caplog, "handler.stuck")] == ["tester"]


@pytest.mark.parametrize("answer", [None, {"total": 2.5}])
async def test_an_unusable_reply_is_logged_with_the_task_and_the_reason(caplog, answer):
    work, link = Work(), StubLink()
    work.agent.handler("work.odd", description="Answers oddly.")(lambda: answer)
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.odd"))

    result = await link.result()
    reason = f"the reply can't be sent: a handler can't return {type(answer).__name__}"
    assert (result.error_code, result.error_message, result.can_retry) == ("agent_error", reason, False)
    assert logged(caplog, "reply.unusable") == [facts(capability="work.odd", reason=reason)]
    assert [line["error_code"] for line in logged(caplog, "task.ended")] == ["agent_error"]
