"""About how many bytes of memory a request's state takes (pure)."""

from collections.abc import Mapping, Sequence
from sys import getsizeof

from dispatcher.dispatch.request import RequestState

_BARE, _PART = 1_000, 500
"""A request and each of its intents, tasks and attempts without what callers and agents wrote."""


def weight_of(state: RequestState) -> int:
    """Bytes, from what callers and agents wrote: the rest is small."""
    request = state.request
    weight = _BARE + _weigh(request.message) + _weigh(request.context) + _weigh(request.answer)
    for intent in state.intents:
        weight += _PART + _weigh(intent.text) + _weigh(intent.inputs)
    for task in state.tasks:
        weight += _PART + _weigh(task.inputs) + _weigh(task.ranking)
        weight += _weigh(task.result_text) + _weigh(task.result_data)
    return weight + sum(_PART + _weigh(attempt.progress) for attempt in state.attempts)


def _weigh(value: object) -> int:
    if not value:
        return 0
    if isinstance(value, str):
        return getsizeof(value)
    if isinstance(value, Mapping):
        return getsizeof(value) + sum(_weigh(key) + _weigh(item) for key, item in value.items())
    if isinstance(value, Sequence):
        return getsizeof(value) + sum(map(_weigh, value))
    return getsizeof(value)
