"""Any endpoint that speaks OpenAI's chat completions: one address, one model."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple

import aiohttp
import orjson

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.intents.language_model import Prompt
from dispatcher.intents.model_budget import ModelBudget

MAX_REPLY_BYTES = 256 * 1024
"""More is not read: a reply holds some quotes of one message."""
KEEP_ALIVE_S = 4.0
"""Less than what servers keep an idle connection for, so that they rarely close it under a call."""
BYTES_PER_TOKEN = 3
"""Of UTF-8, estimated rather too low: one Chinese character, or most of a piece of an English word."""
_REASONS: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "does not take the key",
    HTTPStatus.FORBIDDEN: "does not take the key",
    HTTPStatus.TOO_MANY_REQUESTS: "takes no more for now",
}


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
        if not (rules.key.isascii() and rules.key.isprintable()):
            raise ConfigurationError("the language model's key must be visible ASCII")
        self._rules = rules
        self._budget = budget
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Calls work inside the block; leaving it closes all connections."""
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._rules.timeout_s),
            auto_decompress=False,
            trust_env=False,
        ) as session:
            self._session = session
            try:
                yield
            finally:
                self._session = None

    async def ask(self, prompt: Prompt) -> object:
        """See `language_model.LanguageModel`."""
        body = self._body(prompt)
        with self._budget.spending(len(body) // BYTES_PER_TOKEN + self._rules.max_tokens) as spending:
            status, answer = await self._exchange(body)
            if status != HTTPStatus.OK:
                raise _unavailable(f"{_REASONS.get(status, 'failed')} ({status})")
            completion = read_completion(answer)
            if completion.tokens is not None:
                spending.tokens = completion.tokens
        return completion.value

    async def _exchange(self, body: bytes) -> tuple[int, bytes]:
        try:
            return await self._post(body)
        except TimeoutError:
            raise _unavailable(f"did not answer within {self._rules.timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _unavailable("can't be reached, or broke off") from error

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        if self._session is None:
            raise _unavailable("is not asked any more")
        async with self._session.post(
            self._rules.url, data=body, headers=self._headers(), allow_redirects=False
        ) as response:
            answer = bytearray()
            async for piece in response.content.iter_any():
                answer += piece
                if len(answer) > MAX_REPLY_BYTES:
                    raise aiohttp.ClientPayloadError("too long")
            return response.status, bytes(answer)

    def _body(self, prompt: Prompt) -> bytes:
        form = {"name": prompt.name, "strict": True, "schema": prompt.schema}
        try:
            data = orjson.dumps(prompt.data).decode()
        except TypeError:  # half a surrogate pair
            raise _unavailable("can't be asked about a text that is no Unicode") from None
        return orjson.dumps(
            {
                "model": self._rules.model,
                "messages": [
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": data},
                ],
                "temperature": 0,
                "max_tokens": self._rules.max_tokens,
                "response_format": {"type": "json_schema", "json_schema": form},
            }
        )

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        return headers | ({"Authorization": f"Bearer {self._rules.key}"} if self._rules.key else {})


def read_completion(body: bytes) -> Completion:
    """What a 200 says; raises UnavailableError for anything but one JSON text of a choice."""
    try:
        document = orjson.loads(body)
        value = orjson.loads(document["choices"][0]["message"]["content"])
        usage = document.get("usage")
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _unavailable("gave something that is no completion in JSON") from None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return Completion(value, tokens if type(tokens) is int else None)


def _unavailable(what: str) -> UnavailableError:
    return UnavailableError(f"the language model {what}")
