"""A handler and the contract read from its annotations."""

import inspect
import types
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from dispatcher.errors import ConfigurationError, RequestError
from dispatcher.protocol.declaration import CapabilityDeclaration
from dispatcher.sdk.reply import BusinessError, NeedsInput, Reply
from dispatcher.sdk.task_view import TaskView

HandlerFunction = Callable[..., Any]
_STREAMS = frozenset({AsyncGenerator, AsyncIterator, AsyncIterable, Generator, Iterator, Iterable})
"""Return annotations of generators; what they are made of comes first among their arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a handler takes and gives: the models its schemas are made from, and its parameters' order."""

    input_model: type[BaseModel] | None
    output_model: type[BaseModel] | None
    parameters: tuple[str, ...]
    """`input` and `task`, in the order the function takes them."""
    is_async: bool
    """Whether it runs on the handlers' event loop; others get a thread of their own."""
    is_stream: bool
    """Whether it yields its reply piece by piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One capability of an agent and the function behind it."""

    agent_id: str
    capability: str
    function: HandlerFunction
    signature: Signature
    descriptions: tuple[str, ...]
    examples: tuple[str, ...]
    idempotent: bool
    timeout_s: float

    def declaration(self) -> CapabilityDeclaration:
        """What is registered; raises pydantic's ValidationError for texts over the contract's limits."""
        takes, gives = self.signature.input_model, self.signature.output_model
        return CapabilityDeclaration(
            name=self.capability,
            descriptions=list(self.descriptions),
            examples=list(self.examples),
            input_schema=takes.model_json_schema() if takes else {},
            output_schema=gives.model_json_schema(mode="serialization") if gives else {},
            idempotent=self.idempotent,
            timeout_ms=round(self.timeout_s * 1000),
        )

    def arguments(self, fields: dict[str, Any], view: TaskView) -> list[Any]:
        """The function's arguments; raises `RequestError` naming the fields that don't fit."""
        model = self.signature.input_model
        try:
            given = {"task": view, "input": model.model_validate(fields) if model else None}
        except ValidationError as error:
            where = ", ".join(".".join(map(str, e["loc"])) for e in error.errors(include_input=False))
            raise RequestError(f"the input does not fit: {where}", code="invalid_input") from error
        return [given[name] for name in self.signature.parameters]


def read_signature(function: HandlerFunction) -> Signature:
    """The models and parameter order of a handler, from its annotations.

    Raises `ConfigurationError` for a parameter that is neither a model nor the TaskView.
    """
    name = getattr(function, "__name__", "handler")
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ConfigurationError(f"{name}: its annotations can't be read: {error}") from error
    takes: type[BaseModel] | None = None
    order: list[str] = []
    for parameter in inspect.signature(function).parameters:
        annotation = hints.get(parameter)
        if annotation is TaskView:
            order.append("task")
        elif _is_model(annotation):
            takes = annotation
            order.append("input")
        else:
            raise ConfigurationError(f"{name}: annotate {parameter!r} as a pydantic model or TaskView")
    if len(set(order)) != len(order):
        raise ConfigurationError(f"{name}: takes at most one model and one TaskView")
    yields_async = inspect.isasyncgenfunction(function)
    return Signature(
        input_model=takes,
        output_model=_output_model(name, hints.get("return")),
        parameters=tuple(order),
        is_async=yields_async or inspect.iscoroutinefunction(function),
        is_stream=yields_async or inspect.isgeneratorfunction(function),
    )


def _output_model(name: str, annotation: object) -> type[BaseModel] | None:
    models = [model for model in map(_answer_model, _members(annotation)) if model is not None]
    if len(models) > 1:
        raise ConfigurationError(f"{name}: returns more than one model")
    return models[0] if models else None


def _members(annotation: object) -> Sequence[object]:
    if get_origin(annotation) in _STREAMS:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


def _answer_model(member: object) -> type[BaseModel] | None:
    if member in (NeedsInput, BusinessError, str, Reply, None):
        return None
    inner = get_args(member)[0] if get_origin(member) is Reply else member
    return inner if _is_model(inner) else None


def _is_model(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
