import pytest

from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.dispatch.lifecycle.weight import weight_of
from dispatcher.records import replace
from tests.dispatch.builders import accepted, intent

LARGE = 100_000


@pytest.fixture
def state() -> RequestState:
    return accepted(intent(0))


def test_a_small_request_weighs_a_few_kilobytes(state: RequestState):
    assert 1_000 < weight_of(state) < 5_000


@pytest.mark.parametrize("value", ["x" * LARGE, "字" * (LARGE // 2)])
def test_a_result_weighs_what_its_text_takes_in_memory(state: RequestState, value: str):
    (task,) = state.tasks

    heavier = replace(state, tasks=(replace(task, result_text=value),))

    assert LARGE <= weight_of(heavier) - weight_of(state) < 1.1 * LARGE


def test_what_is_deep_inside_a_context_weighs_too(state: RequestState):
    context = {"rows": [{"a": "x" * 1_000} for _ in range(100)], "n": 1, "none": None}

    heavier = replace(state, request=replace(state.request, context=context))

    assert LARGE <= weight_of(heavier) - weight_of(state) < 1.5 * LARGE
