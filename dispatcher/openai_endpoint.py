"""One address that speaks OpenAI's protocol: how it is asked, and what is said where that fails."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

import aiohttp
import orjson

from dispatcher.errors import ConfigurationError, UnavailableError

KEEP_ALIVE_S = 4.0
"""Less than what servers keep an idle connection for, so that they rarely close it under a call."""
_REASONS: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "does not take the key",
    HTTPStatus.FORBIDDEN: "does not take the key",
    HTTPStatus.TOO_MANY_REQUESTS: "takes no more for now",
}
_NOT_ABOUT_CONTENT = frozenset({401, 402, 403, 404, 405, 407, 408, 425, 429})
"""Of 4xx, those that any other content would get as well."""


class NotTakenError(UnavailableError):
    """What was asked is not taken (no Unicode, or 4xx); something else may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`url` is the whole address and the only one called. A call ends after `timeout_s`.

    Every sentence begins with `named`. Raises ConfigurationError for a key that fits no header.
    """

    named: str
    url: str
    key: str = field(default="", repr=False)
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        if not (self.key.isascii() and self.key.isprintable()):
            raise ConfigurationError(f"{self.named}'s key must be visible ASCII")

    def encoded(self, asked: Mapping[str, object]) -> bytes:
        """The body of a call; raises NotTakenError."""
        try:
            return orjson.dumps(asked)
        except TypeError:  # half a surrogate pair
            raise NotTakenError(f"{self.named} can't be asked about a text that is no Unicode") from None

    def unavailable(self, what: str) -> UnavailableError:
        """One sentence; `what` repeats nothing of what was asked or answered."""
        return UnavailableError(f"{self.named} {what}")


class OpenAiEndpoint:
    """Calls work inside `opened`, on its event loop. Tries nothing again, and follows no redirects."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Leaving it closes all connections."""
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
            trust_env=False,
        ) as session:
            self._session = session
            try:
                yield
            finally:
                self._session = None

    async def ask(self, body: bytes, limit: int) -> bytes:
        """The body of a 200, of at most `limit` bytes.

        Raises UnavailableError with one sentence for anything else, NotTakenError where the endpoint may
        take another body.
        """
        status, answer = await self._exchange(body, limit)
        if status == HTTPStatus.OK:
            return answer
        sentence = f"{self.address.named} {_REASONS.get(status, 'failed')} ({status})"
        is_about_content = 400 <= status < 500 and status not in _NOT_ABOUT_CONTENT
        raise NotTakenError(sentence) if is_about_content else UnavailableError(sentence)

    async def _exchange(self, body: bytes, limit: int) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(self.address.timeout_s):
                return await self._post(body, limit)
        except TimeoutError:
            raise self.address.unavailable(f"did not answer within {self.address.timeout_s:g} s") from None
        except (ValueError, TypeError):
            # The library's own words would repeat the address.
            raise self.address.unavailable("can't be asked at this address") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self.address.unavailable("can't be reached, or broke off") from error

    async def _post(self, body: bytes, limit: int) -> tuple[int, bytes]:
        if self._session is None:
            raise self.address.unavailable("is not asked any more")
        async with self._session.post(
            self.address.url, data=body, headers=self._headers(), allow_redirects=False
        ) as response:
            answer = bytearray()
            async for piece in response.content.iter_any():
                answer += piece
                if len(answer) > limit:
                    raise aiohttp.ClientPayloadError("too long")
            return response.status, bytes(answer)

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        return headers | ({"Authorization": f"Bearer {self.address.key}"} if self.address.key else {})
