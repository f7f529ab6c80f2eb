"""About how many bytes of memory a request's state takes (pure)."""

from sys import getsizeof

from dispatcher.dispatch.lifecycle.request import RequestState

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
    for attempt in state.attempts:
        weight += _PART + _weigh(attempt.progress)
    return weight


def _weigh(value: object) -> int:
    """Of JSON values alone, as all is that people and agents write."""
    if not value:
        return 0
    weight = getsizeof(value)
    if isinstance(value, dict):
        for key, item in value.items():
            weight += getsizeof(key) + _weigh(item)
    elif isinstance(value, list):
        for item in value:
            weight += _weigh(item)
    return weight
