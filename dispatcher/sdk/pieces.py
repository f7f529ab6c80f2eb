"""The pieces of a streaming handler's reply: joined for the result, and sent on as they come."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from dispatcher.protocol.frames import ResultBody
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.sdk.outcome import UnusableReplyError
from dispatcher.sdk.reply import Reply

EVERY_S = 0.05
"""At most one frame in so many seconds; what comes in between is joined."""
MOST_BYTES = 262_144
"""Text that waits to be sent; beyond, the handler waits."""
CLOSE_S = 2.0
"""The longest that a result waits for its last pieces to be sent."""

Send = Callable[[int, ResultBody], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One part of a reply, as it goes over the wire."""

    text: str
    data: Mapping[str, Any]


class Joined:
    """All pieces of one stream so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._bytes = 0
        self._last: Reply[Any] = Reply()

    def add(self, yielded: object) -> Piece:
        """Keep a `str` or `Reply`.

        Raises `UnusableReplyError` for anything else, and for more than fits a frame.
        """
        match yielded:
            case Reply():
                piece = _piece(yielded.text or "", yielded.data)
                self._last = yielded if yielded.data is not None else self._with_data_of_last(yielded)
            case str():
                piece = _piece(yielded, None)
            case _:
                raise UnusableReplyError(f"a handler can't yield {type(yielded).__name__}")
        self._texts.append(piece.text)
        self._bytes += len(piece.text.encode(errors="replace"))
        if self._bytes > MAX_FRAME_BYTES:
            raise UnusableReplyError(
                f"the pieces have over {MAX_FRAME_BYTES} bytes, the limit", code="result_too_large"
            )
        return piece

    def reply(self) -> Reply[Any]:
        """The whole: joined text, the data of the last piece that had some, the last usage and context."""
        return Reply(
            text="".join(self._texts) or None,
            data=self._last.data,
            usage=self._last.usage,
            context_update=self._last.context_update,
        )

    def _with_data_of_last(self, reply: Reply[Any]) -> Reply[Any]:
        return Reply(data=self._last.data, usage=reply.usage, context_update=reply.context_update)


class Pieces:
    """Sends pieces in order, joined to at most twenty frames a second. Lives on the link's loop."""

    def __init__(self, send: Send, group: asyncio.TaskGroup) -> None:
        self._send = send
        self._group = group
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Piece] = []
        self._bytes = 0
        self._sequence = 0
        self._room = asyncio.Event()
        self._closing = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, piece: Piece) -> Future[None]:
        """Take a piece from any thread; done once there is room for the next one."""
        return asyncio.run_coroutine_threadsafe(self._put(piece), self._loop)

    async def close(self) -> None:
        """Return once the last piece was sent, after `CLOSE_S` at the latest; later ones are dropped."""
        self._closing.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._idle.wait()

    async def _put(self, piece: Piece) -> None:
        if self._closing.is_set():
            return
        self._waiting.append(piece)
        self._bytes += len(piece.text)
        if self._idle.is_set():
            self._idle.clear()
            self._group.create_task(self._send_on())
        while self._bytes >= MOST_BYTES:
            self._room.clear()
            await self._room.wait()

    async def _send_on(self) -> None:
        try:
            while self._waiting:
                await self._send(self._sequence, self._take())
                self._sequence += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_S):
                        await self._closing.wait()
        finally:
            self._idle.set()

    def _take(self) -> ResultBody:
        pieces, self._waiting = self._waiting, []
        self._bytes = 0
        self._room.set()
        data = next((piece.data for piece in reversed(pieces) if piece.data), {})
        return ResultBody(text="".join(piece.text for piece in pieces) or None, data=dict(data))


def _piece(text: str, data: BaseModel | Mapping[str, Any] | None) -> Piece:
    """As JSON values that can be sent."""
    plain = data.model_dump(mode="json", by_alias=True) if isinstance(data, BaseModel) else dict(data or {})
    try:
        body = ResultBody(text=text, data=plain)
    except ValidationError as error:
        raise UnusableReplyError("a piece of the reply can't be sent") from error
    return Piece(text=text, data=body.data)
