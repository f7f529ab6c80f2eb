"""Any endpoint that speaks OpenAI's chat completions: one address, one model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from dispatcher.errors import UnavailableError
from dispatcher.intents.language_model import Prompt
from dispatcher.intents.model_budget import ModelBudget
from dispatcher.openai_endpoint import Address, OpenAiEndpoint

MODEL = "the language model"
MAX_REPLY_BYTES = 256 * 1024
"""More is not read: a reply holds some quotes of one message."""
BYTES_PER_TOKEN = 3
"""Of UTF-8, estimated rather too low: one Chinese character, or most of a piece of an English word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRules:
    """Where it is and what is asked of it.

    `url` is the whole address and the only one called: redirects are not followed. A call ends after
    `timeout_s`, a reply after `max_tokens`.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout_s: float = 2.0
    max_tokens: int = 512


class Completion(NamedTuple):
    """A reply's JSON value, and what the endpoint says that the call cost."""

    value: object
    tokens: int | None


class ChatCompletions:
    """Implements `language_model.LanguageModel` inside `opened`; tries nothing again and logs nothing."""

    def __init__(self, rules: ChatRules, budget: ModelBudget) -> None:
        self._rules = rules
        self._budget = budget
        self._endpoint = OpenAiEndpoint(
            Address(named=MODEL, url=rules.url, key=rules.key, timeout_s=rules.timeout_s)
        )

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Calls work inside the block; leaving it closes all connections."""
        async with self._endpoint.opened():
            yield

    async def ask(self, prompt: Prompt) -> object:
        """See `language_model.LanguageModel`."""
        body = self._body(prompt)
        with self._budget.spending(len(body) // BYTES_PER_TOKEN + self._rules.max_tokens) as spending:
            completion = read_completion(await self._endpoint.ask(body, MAX_REPLY_BYTES))
            if completion.tokens is not None:
                spending.tokens = completion.tokens
        return completion.value

    def _body(self, prompt: Prompt) -> bytes:
        encoded = self._endpoint.address.encoded
        form = {"name": prompt.name, "strict": True, "schema": prompt.schema}
        return encoded(
            {
                "model": self._rules.model,
                "messages": [
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": encoded(prompt.data).decode()},
                ],
                "temperature": 0,
                "max_tokens": self._rules.max_tokens,
                "response_format": {"type": "json_schema", "json_schema": form},
            }
        )


def read_completion(body: bytes) -> Completion:
    """What a 200 says; raises UnavailableError for anything but one JSON text of a choice."""
    try:
        document = orjson.loads(body)
        value = orjson.loads(document["choices"][0]["message"]["content"])
        usage = document.get("usage")
    except (LookupError, TypeError, ValueError, AttributeError):
        raise UnavailableError(f"{MODEL} gave something that is no completion in JSON") from None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return Completion(value, tokens if type(tokens) is int else None)
