"""What a handler may answer: a reply, a question back, or a failure it knows about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, JsonValue

DataT_co = TypeVar("DataT_co", bound=BaseModel | Mapping[str, Any] | None, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[DataT_co]):
    """`text` is for the person, in the request's language; `data` for the intents that build on it.

    Where the handler's return annotation names a model (`Reply[Weather]`), `data` must fit it: one that
    does not makes the task an `agent_error`. `usage` (tokens, calls, ...) and `context_update` are
    passed on as they are.
    """

    text: str | None = None
    data: DataT_co | None = None
    usage: Mapping[str, JsonValue] = field(default_factory=dict)
    context_update: Mapping[str, JsonValue] = field(default_factory=dict)


class NeedsInput(Exception):  # noqa: N818 - a question, not an error; handlers may raise or return it
    """Ask the person for what is missing: `question` is shown, `fields` names the input fields.

    Raise it or return it. The part ends `needs_input`.
    """

    def __init__(self, question: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(question)
        self.question = question
        self.fields = tuple(fields)


class BusinessError(Exception):
    """The call worked, but the agent could not do what was asked; counts as its failure.

    Raise it or return it. `text` is for the person: the part's result text, but not in the merged answer,
    which says only that the part did not work out. `code` is stable, at most 64 characters.
    """

    def __init__(self, text: str, code: str = "business_error") -> None:
        super().__init__(text)
        self.text = text
        self.code = code[:64]


Answer = Reply[Any] | NeedsInput | BusinessError | BaseModel | str
"""Everything a handler may return; a bare model is `data` without text, a `str` is text alone."""
