"""About how many bytes of memory a request's state takes (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from sys import getsizeof

from dispatcher.dispatch.request import RequestState

_BARE, _PART = 2_000, 1_500
"""A request and each of its intents, tasks and attempts without what callers and agents wrote."""


def weight_of(state: RequestState) -> int:
    """Bytes, from what callers and agents wrote: the rest is small."""
    parts = len(state.intents) + len(state.tasks) + len(state.attempts)
    return _BARE + _PART * parts + sum(map(_weigh, _written(state)))


def _written(state: RequestState) -> Iterator[object]:
    yield from (state.request.message, state.request.context, state.request.answer)
    for intent in state.intents:
        yield from (intent.text, intent.inputs)
    for task in state.tasks:
        yield from (task.inputs, task.result_text, task.result_data, task.ranking)
    for attempt in state.attempts:
        yield attempt.progress


def _weigh(value: object) -> int:
    if isinstance(value, Mapping):
        return getsizeof(value) + sum(map(_weigh, value.keys())) + sum(map(_weigh, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return getsizeof(value) + sum(map(_weigh, value))
    return getsizeof(value)
