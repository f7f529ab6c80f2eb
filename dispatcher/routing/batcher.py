"""One encoder for the whole process: concurrent texts share a batch, known texts are not encoded again."""

import asyncio
import logging
import unicodedata
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import numpy as np

from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.routing.embedder import Embedder, TextRefusedError, Vectors
from dispatcher.routing.prepared import MAX_CHARACTERS

logger = logging.getLogger(__name__)

CLOSED = "the encoder is closed"


class TextEncoder(Protocol):
    """An encoder that can be awaited."""

    @property
    def encoder_id(self) -> str:
        """See `embedder.Embedder`."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    async def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """Shape (len(texts), dimensions), rows of length 1 or, for texts without content, 0."""
        ...


_Key = tuple[str, bool]
"""A text as it is encoded, and whether as a passage."""
_Encoded = Vectors | BaseException
"""A row, or why there is none."""


def text_key(text: str) -> str:
    """The key of a text in batches and cache: NFC, single spaces, at most MAX_CHARACTERS.

    What routing asks for comes as `prepared` has it, which leaves nothing to do here.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())[:MAX_CHARACTERS].rstrip()


class _Batch:
    """Texts of one kind that are encoded in one call; whoever needs one of them waits for `done`."""

    def __init__(self, *, as_passages: bool) -> None:
        self.as_passages = as_passages
        self.keys: list[_Key] = []
        self.done = asyncio.Event()
        self.vectors: dict[_Key, Vectors] = {}
        self.errors: dict[_Key, BaseException] = {}


class BatchingEncoder:
    """Makes a blocking encoder awaitable: one call at a time, in one thread of its own.

    What arrives during a call forms the next batch, of at most `batch_size` texts. At `queue_limit`
    texts waiting it raises OverloadedError and accepts nothing of that call. `cache_size` vectors
    are kept (2 KB each at 512 dimensions), the longest unused dropped first. Belongs to one event loop.
    """

    def __init__(
        self, embedder: Embedder, *, cache_size: int = 20_000, queue_limit: int = 10_000, batch_size: int = 64
    ) -> None:
        self._encode: Callable[..., Vectors] | None = embedder.encode
        self._named = (embedder.encoder_id, embedder.dimensions)
        self._cache_size = cache_size
        self._queue_limit = queue_limit
        self._batch_size = batch_size
        self._cache: OrderedDict[_Key, Vectors] = OrderedDict()
        self._queue: deque[_Batch] = deque()
        self._batch_of: dict[_Key, _Batch] = {}
        self._is_running = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder")

    @property
    def encoder_id(self) -> str:
        """That of the encoder within."""
        return self._named[0]

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._named[1]

    async def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """One row for each text, cut to MAX_CHARACTERS.

        Raises OverloadedError when the queue is full, UnavailableError when the encoder failed,
        TextRefusedError when it does not take one of the texts.
        """
        keys = [(text_key(text), as_passages) for text in texts]
        found = {key: self._cache[key] for key in keys if key in self._cache}
        for key in found:
            self._cache.move_to_end(key)
        if len(found) < len(keys):
            found |= await self._encoded(keys, found)
        if not keys:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return np.array([found[key] for key in keys])

    async def _encoded(self, keys: Sequence[_Key], found: Mapping[_Key, Vectors]) -> dict[_Key, Vectors]:
        """The rows that are not found yet."""
        made: dict[_Key, Vectors] = {}
        batches = self._enqueue([key for key in dict.fromkeys(keys) if key not in found])
        for batch in batches:
            await batch.done.wait()
            for key in keys:
                if key in batch.errors:
                    raise _failed(batch.errors[key]) from batch.errors[key]
            made |= batch.vectors
        return made

    def stop(self) -> None:
        """Start no call any more, and let go of the model and all vectors; on the event loop.

        Whoever waits for a text whose call has not begun gets UnavailableError.
        """
        self._encode = None
        self._cache.clear()
        closed = UnavailableError(CLOSED)
        while self._queue:
            batch = self._queue.popleft()
            batch.errors = dict.fromkeys(batch.keys, closed)
            for key in batch.keys:
                del self._batch_of[key]
            batch.done.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Stop, and end the thread after the call that runs; once stopped, any thread may wait here."""
        if self._encode is not None:
            self.stop()
        self._thread.shutdown()

    def _enqueue(self, keys: Sequence[_Key]) -> list[_Batch]:
        new = [key for key in keys if key not in self._batch_of]
        if new and self._encode is None:
            raise UnavailableError(CLOSED)
        waiting = sum(len(batch.keys) for batch in self._queue)
        if new and waiting + len(new) > self._queue_limit:
            raise OverloadedError("the encoder's queue is full")
        for key in new:
            batch = self._open_batch(as_passages=key[1])
            batch.keys.append(key)
            self._batch_of[key] = batch
        batches = list({id(self._batch_of[key]): self._batch_of[key] for key in keys}.values())
        self._start_next()
        return batches

    def _open_batch(self, *, as_passages: bool) -> _Batch:
        last = self._queue[-1] if self._queue else None
        if last is None or last.as_passages != as_passages or len(last.keys) >= self._batch_size:
            last = _Batch(as_passages=as_passages)
            self._queue.append(last)
        return last

    def _start_next(self) -> None:
        if self._is_running or not self._queue or self._encode is None:
            return
        batch = self._queue.popleft()
        self._is_running = True
        loop = asyncio.get_running_loop()
        encode = partial(self._encode, as_passages=batch.as_passages)
        call = loop.run_in_executor(self._thread, _encode_each, encode, [text for text, _ in batch.keys])
        call.add_done_callback(partial(self._finish, batch))

    def _finish(self, batch: _Batch, call: "asyncio.Future[list[_Encoded]]") -> None:
        self._is_running = False
        failure = asyncio.CancelledError() if call.cancelled() else call.exception()
        encoded = call.result() if failure is None else [failure] * len(batch.keys)
        for key, one in zip(batch.keys, encoded, strict=True):
            if isinstance(one, BaseException):
                batch.errors[key] = one
            else:
                batch.vectors[key] = one
            del self._batch_of[key]
        if batch.errors:
            _log(batch)
        self._remember(batch.vectors)
        batch.done.set()
        self._start_next()

    def _remember(self, vectors: dict[_Key, Vectors]) -> None:
        if self._encode is None:
            return
        # Copies: a row that is kept must not keep its whole batch alive.
        self._cache |= {key: row.copy() for key, row in vectors.items()}
        while len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)


def _encode_each(encode: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> "list[_Encoded]":
    """A row or an error for each text. Where texts are refused, each is asked for by itself, once.

    What fails otherwise then ends that: the rest would wait for it one by one.
    """
    try:
        return list(encode(texts))
    except TextRefusedError:
        if len(texts) == 1:
            raise
    found: list[_Encoded] = []
    for text in texts:
        try:
            found.extend(encode([text]))
        except TextRefusedError as error:
            found.append(error)
        except UnavailableError as error:
            return found + [error] * (len(texts) - len(found))
    return found


def _log(batch: _Batch) -> None:
    """A text that is refused is its sender's matter, and no trace of ours would tell more."""
    facts = {"texts": len(batch.errors), "of": len(batch.keys)}
    failures = [error for error in batch.errors.values() if not isinstance(error, TextRefusedError)]
    if failures:
        logger.error("encoder.failed", extra=facts, exc_info=failures[0])
    else:
        logger.warning("encoder.refused", extra=facts)


def _failed(error: BaseException) -> UnavailableError:
    """With the encoder's own sentence; of other failures only that there was one."""
    if isinstance(error, TextRefusedError):
        return TextRefusedError(error.message)
    return UnavailableError(error.message if isinstance(error, UnavailableError) else "the encoder failed")
