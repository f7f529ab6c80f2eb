"""What one delivery needed is gone with it, and waits for no garbage collection (I9)."""

import gc
from collections.abc import Iterator

import pytest

from dispatcher.sdk.running import Running
from tests.sdk.stub_link import StubLink, task_frame
from tests.sdk.working import Work, handled, intake_of


@pytest.fixture
def _without_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _runs() -> list[Running]:
    return [thing for thing in gc.get_objects() if type(thing) is Running]


@pytest.mark.parametrize("kind", ["async", "thread"])
@pytest.mark.usefixtures("_without_collections")
async def test_a_settled_delivery_leaves_no_cycle_behind(kind):
    work, link = Work(), StubLink()
    of_other_tests = _runs()

    async def does() -> str:
        return "done"

    work.agent.handler("work.await", description="Works.")(does)
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.await" if kind == "async" else "work.do"))
        await link.result()

    assert [run for run in _runs() if not any(run is other for other in of_other_tests)] == []
