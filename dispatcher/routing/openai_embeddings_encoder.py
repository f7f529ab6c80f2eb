"""Any endpoint that speaks OpenAI's embeddings: one address, one model."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from http import HTTPStatus

import aiohttp
import numpy as np
import orjson

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.routing.embedder import Vectors, unit_rows
from dispatcher.routing.encoder_id import encoder_id_of

ENDPOINT = "the embeddings endpoint"
BYTES_PER_TEXT = 256 * 1024
"""Of an answer at most, and 64 KiB for the whole: 8,192 numbers of 32 characters. More is not read."""
KEEP_ALIVE_S = 4.0
"""Less than what servers keep an idle connection for, so that they rarely close it under a call."""
_REASONS: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "does not take the key",
    HTTPStatus.FORBIDDEN: "does not take the key",
    HTTPStatus.TOO_MANY_REQUESTS: "takes no more for now",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRules:
    """Where it is and what is asked of it.

    `url` is the whole address and the only one called: redirects are not followed. `dimensions` asks
    for vectors of that length, which not every model can give. A call ends after `timeout_s`.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    query_prefix: str = ""
    passage_prefix: str = ""
    dimensions: int | None = None
    timeout_s: float = 10.0


class OpenAiEmbeddingsEncoder:
    """Asks for one vector on construction unless their length is given; has to be closed.

    Whatever is wrong with an answer raises UnavailableError with one sentence, and none of its vectors
    is used. Nothing is tried again here: who asked does that. Calls run in a thread of its own.
    """

    def __init__(self, rules: EndpointRules) -> None:
        if not (rules.key.isascii() and rules.key.isprintable()):
            raise ConfigurationError("the embeddings endpoint's key must be visible ASCII")
        self._rules = rules
        self._session: aiohttp.ClientSession | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embeddings", daemon=True)
        self._thread.start()
        try:
            self.dimensions = rules.dimensions or len(self._ask(["length"])[0])
        except BaseException:
            self.close()
            raise
        prepared = (rules.url, rules.model, rules.query_prefix, rules.passage_prefix, self.dimensions)
        self.encoder_id = encoder_id_of("openai", rules.model, prepared)

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """See `embedder.Embedder`; raises UnavailableError for all of them or none."""
        prefix = self._rules.passage_prefix if as_passages else self._rules.query_prefix
        return unit_rows(
            texts, self.dimensions, lambda filled: self._ask([prefix + text for text in filled]), ENDPOINT
        )

    def close(self) -> None:
        """End all calls, connections and the thread; a second time it does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _ask(self, texts: list[str]) -> Vectors:
        if self._loop.is_closed():
            raise _unavailable("is not asked any more")
        call = asyncio.run_coroutine_threadsafe(self._exchange(texts), self._loop)
        try:
            status, body = call.result()
        except TimeoutError:
            raise _unavailable(f"did not answer within {self._rules.timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _unavailable("can't be reached, or broke off") from error
        except CancelledError:
            raise _unavailable("is not asked any more") from None
        if status != HTTPStatus.OK:
            raise _unavailable(f"{_REASONS.get(status, 'failed')} ({status})")
        return read_vectors(body, len(texts))

    async def _exchange(self, texts: list[str]) -> tuple[int, bytes]:
        asked: dict[str, object] = {"model": self._rules.model, "input": texts, "encoding_format": "float"}
        if self._rules.dimensions is not None:
            asked["dimensions"] = self._rules.dimensions
        limit = BYTES_PER_TEXT * len(texts) + 65_536
        async with (
            asyncio.timeout(self._rules.timeout_s),
            self._connected().post(
                self._rules.url, data=orjson.dumps(asked), headers=self._headers(), allow_redirects=False
            ) as response,
        ):
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > limit:
                    raise aiohttp.ClientPayloadError("too long")
            return response.status, bytes(body)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        return headers | ({"Authorization": f"Bearer {self._rules.key}"} if self._rules.key else {})

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session

    async def _close(self) -> None:
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        if self._session is not None:
            await self._session.close()


def read_vectors(body: bytes, count: int) -> Vectors:
    """The vectors of an answer in the order of the texts; raises UnavailableError for any other answer."""
    try:
        data = orjson.loads(body)["data"]
        found = {int(row.get("index", at)): row["embedding"] for at, row in enumerate(data)}
        rows = [found[at] for at in range(len(data))]
        if len(rows) != count:
            raise _unavailable(f"gave {len(rows)} vectors for {count} texts")
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
            vectors = np.array(rows, dtype=np.float32)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _unavailable("gave something that is no list of vectors") from None
    if vectors.ndim != 2:
        raise _unavailable("gave something that is no list of vectors")
    return vectors


def _unavailable(what: str) -> UnavailableError:
    return UnavailableError(f"{ENDPOINT} {what}")
