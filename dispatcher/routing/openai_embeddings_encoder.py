"""Any endpoint that speaks OpenAI's embeddings: one address, one model."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import orjson

from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import UnavailableError
from dispatcher.failure_rest import Rest, RestRules, after_failure, after_success
from dispatcher.openai_endpoint import Address, NotTakenError, OpenAiEndpoint
from dispatcher.routing.embedder import TextRefusedError, Vectors, unit_rows
from dispatcher.routing.encoder_id import encoder_id_of

ENDPOINT = "the embeddings endpoint"
BYTES_PER_TEXT = 256 * 1024
"""Of an answer at most, and 64 KiB for the whole: 8,192 numbers of 32 characters. More is not read."""
REST = RestRules(failures=5, rest_s=10.0)
Result = TypeVar("Result")


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
    is used. Nothing is tried again here: who asked does that. After failures in a row nothing is asked
    for a time (REST). Calls run in a thread of its own.
    """

    def __init__(self, rules: EndpointRules, clock: Clock | None = None) -> None:
        address = Address(named=ENDPOINT, url=rules.url, key=rules.key, timeout_s=rules.timeout_s)
        self._rules = rules
        self._clock = clock or SystemClock()
        self._rest = Rest()
        self._endpoint = OpenAiEndpoint(address)
        self._opened = AsyncExitStack()
        self._turn = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embeddings", daemon=True)
        self._thread.start()
        try:
            self._run(self._opened.enter_async_context(self._endpoint.opened())).result()
            self.dimensions = rules.dimensions or len(self._ask(["length"])[0])
        except BaseException:
            self.close()
            raise
        # Not its address: the same model gives the same vectors wherever it runs.
        prepared = (rules.model, rules.query_prefix, rules.passage_prefix, self.dimensions)
        self.encoder_id = encoder_id_of("openai", rules.model, prepared)

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """See `embedder.Embedder`; raises UnavailableError for all of them or none."""
        prefix = self._rules.passage_prefix if as_passages else self._rules.query_prefix
        return unit_rows(
            texts, self.dimensions, lambda filled: self._ask([prefix + text for text in filled]), ENDPOINT
        )

    def close(self) -> None:
        """End all calls, connections and the thread; a second time it does nothing."""
        with self._turn:
            if self._is_closed:
                return
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _ask(self, texts: list[str]) -> Vectors:
        if self._clock.monotonic() < self._rest.until:
            raise _unavailable("failed several times in a row, and is left alone")
        try:
            vectors = self._ask_now(texts)
        except TextRefusedError:
            self._rest = after_success(self._rest)
            raise
        except UnavailableError:
            self._rest = after_failure(self._rest, REST, self._clock.monotonic())
            raise
        self._rest = after_success(self._rest)
        return vectors

    def _ask_now(self, texts: list[str]) -> Vectors:
        asked: dict[str, object] = {"model": self._rules.model, "input": texts, "encoding_format": "float"}
        if self._rules.dimensions is not None:
            asked["dimensions"] = self._rules.dimensions
        try:
            body = self._endpoint.address.encoded(asked)
            answer = self._run(self._endpoint.ask(body, BYTES_PER_TEXT * len(texts) + 65_536)).result()
        except NotTakenError as error:
            raise TextRefusedError(error.message) from None
        except CancelledError:
            raise _unavailable("is not asked any more") from None
        return read_vectors(answer, len(texts))

    def _run(self, call: Coroutine[object, object, Result]) -> "Future[Result]":
        # In turn with `close`: what comes before its look at the calls is seen by it.
        with self._turn:
            if self._is_closed:
                call.close()
                raise _unavailable("is not asked any more")
            return asyncio.run_coroutine_threadsafe(call, self._loop)

    async def _close(self) -> None:
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._opened.aclose()


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
