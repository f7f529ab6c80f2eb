"""How a task ended, apart from the attempt that asks: what the inbox stores and any attempt can be told."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import to_json

from dispatcher.errors import DispatcherError
from dispatcher.protocol.frames import Document, ResultBody, ResultStatus, Text
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.sdk.envelope import Envelope
from dispatcher.sdk.reply import Answer, BusinessError, NeedsInput, Reply

MAX_MESSAGE = 2000
MAX_CODE = 64
MAX_REASON = 1000
_TOLD_FLAWS, _TOLD_LEVELS = 3, 8
_ENVELOPE_BYTES = 2048
"""More than everything in a result frame that is not in its outcome."""


class UnusableReplyError(DispatcherError):
    """What a handler returned can't be sent; the message says why, without the values themselves."""

    code = "agent_error"


class Outcome(BaseModel):
    """A result frame without what belongs to one attempt (token, number, instance)."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    status: ResultStatus
    result: ResultBody = ResultBody()
    business_error: bool = False
    error_code: Annotated[Text, Field(max_length=MAX_CODE)] | None = None
    error_message: Annotated[Text, Field(max_length=MAX_MESSAGE)] | None = None
    can_retry: bool = False
    usage: Document = {}
    context_update: Document = {}

    @property
    def has_failed(self) -> bool:
        """Whether it counts as a failure of the agent."""
        return self.status is ResultStatus.ERROR or self.business_error

    @property
    def has_not_run(self) -> bool:
        """Whether it says that the task surely did not run."""
        return self.status in {ResultStatus.BUSY, ResultStatus.EXPIRED}

    @cached_property
    def encoded(self) -> bytes:
        """The bytes an inbox stores: a JSON object."""
        return to_json(self)

    @classmethod
    def decode(cls, stored: bytes) -> "Outcome":
        """What was `encoded`; an `agent_error` for what an earlier release stored and can't be sent."""
        try:
            return cls.model_validate_json(stored)
        except ValidationError as error:
            return failure("agent_error", f"the stored outcome can't be sent: {_flaws(error)}")

    def answer_to(self, envelope: Envelope, instance_id: str) -> bytes:
        """The encoded result frame for the attempt that asks, with its token and number (I5).

        What belongs to the attempt, then the outcome's own members: both were validated before.
        """
        return envelope.head(instance_id)[:-1] + b"," + self.encoded[1:]


def failure(code: str, message: str, *, can_retry: bool = False) -> Outcome:
    """An error for operators; the person who asked never sees `message`.

    Never fails itself: code and message are cut to their limits, what can't be sent in them becomes `?`.
    """
    return Outcome(
        status=ResultStatus.ERROR,
        error_code=sendable(code)[:MAX_CODE],
        error_message=sendable(message)[:MAX_MESSAGE],
        can_retry=can_retry,
    )


def too_large(size: int) -> Outcome:
    """What is told instead of a reply of `size` bytes."""
    return failure("result_too_large", f"the reply has {size} bytes, the limit is {MAX_FRAME_BYTES}")


BUSY = Outcome(status=ResultStatus.BUSY, error_code="busy", can_retry=True)
EXPIRED = Outcome(status=ResultStatus.EXPIRED, error_code="expired", can_retry=True)
CANCELLED = Outcome(status=ResultStatus.ERROR, error_code="cancelled")


def outcome_unknown(*, idempotent: bool) -> Outcome:
    """A run began and nobody knows how it ended; it is not repeated here (I2)."""
    return failure("outcome_unknown", "an earlier run began and left no result", can_retry=idempotent)


def outcome_of(answer: Answer, output_model: type[BaseModel] | None = None) -> Outcome:
    """The outcome of what a handler returned; its data must fit `output_model`, where there is one.

    Raises `UnusableReplyError` for an answer that can't be sent.
    """
    try:
        outcome = _translate(answer, output_model)
        size = len(outcome.encoded)
    except (ValueError, TypeError, RecursionError) as error:
        why = _flaws(error) if isinstance(error, ValidationError) else str(error)
        raise UnusableReplyError(f"the reply can't be sent: {sendable(why)[:MAX_REASON]}") from error
    if size > MAX_FRAME_BYTES - _ENVELOPE_BYTES:
        return too_large(size)
    return outcome


def _translate(answer: Answer, output_model: type[BaseModel] | None) -> Outcome:
    match answer:
        case NeedsInput():
            asked: dict[str, JsonValue] = {"fields": list(answer.fields)}
            return Outcome(
                status=ResultStatus.NEEDS_INPUT, result=ResultBody(text=answer.question, data=asked)
            )
        case BusinessError():
            return Outcome(
                status=ResultStatus.SUCCESS,
                result=ResultBody(text=answer.text),
                business_error=True,
                error_code=answer.code,
            )
        case Reply():
            return Outcome(
                status=ResultStatus.SUCCESS,
                result=ResultBody(text=answer.text, data=_document(answer.data, output_model)),
                usage=dict(answer.usage),
                context_update=dict(answer.context_update),
            )
        case str():
            return Outcome(status=ResultStatus.SUCCESS, result=ResultBody(text=answer))
        case BaseModel():
            return Outcome(
                status=ResultStatus.SUCCESS, result=ResultBody(data=_document(answer, output_model))
            )
    raise TypeError(f"a handler can't return {type(answer).__name__}")


def _document(
    data: BaseModel | Mapping[str, Any] | None, output_model: type[BaseModel] | None
) -> dict[str, Any]:
    """The data under the names that the output schema publishes; a reply without data fits any model."""
    if data is None:
        return {}
    fitting = data if output_model is None else _fitted(data, output_model)
    return fitting.model_dump(mode="json", by_alias=True) if isinstance(fitting, BaseModel) else dict(fitting)


def _fitted(data: BaseModel | Mapping[str, Any], model: type[BaseModel]) -> BaseModel:
    if isinstance(data, model):
        return data
    fields = data.model_dump(by_alias=True) if isinstance(data, BaseModel) else dict(data)
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise ValueError(f"its data does not fit {model.__name__}: {_flaws(error)}") from error


def _flaws(error: ValidationError) -> str:
    """Where and why, without the values themselves."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, flaw['loc'][:_TOLD_LEVELS]))}: {flaw['msg']}" for flaw in found[:_TOLD_FLAWS]
    )


def sendable(text: str) -> str:
    """The text with what can't be kept in it replaced by `?`."""
    return str(text).replace("\x00", "?").encode(errors="replace").decode()
