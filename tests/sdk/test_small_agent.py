"""An agent in at most 30 lines does everything the contract asks for."""

import importlib.util
from pathlib import Path

from dispatcher.protocol.frames import ResultStatus
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, serving
from tests.sdk.stub_link import StubLink, task_frame

SOURCE = Path(__file__).with_name("small_agent.py")


def load():
    spec = importlib.util.spec_from_file_location("small_agent", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.agent


def test_it_fits_into_thirty_lines():
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) <= 30


async def test_it_answers_a_task_and_asks_back_without_input():
    link = StubLink()
    async with serving(Runtime(load(), link, MemoryInbox())):
        link.deliver(_task("w:0", {"city": "Hangzhou"}))
        answered = await link.result()
        link.deliver(_task("w:1", {}))
        asked = await link.result()

    assert (answered.status, answered.result.data) == (ResultStatus.SUCCESS, {"celsius": 21.0})
    assert asked.status is ResultStatus.NEEDS_INPUT


def _task(key, fields):
    return task_frame(
        "weather.now", key=key, agent_id="weather", payload={"text": "weather please", "input": fields}
    )
