"""Clients that post, repeat what nobody answered, read, and write down what they saw."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from dispatcher.clock import SystemClock
from dispatcher.identifiers import new_id
from tests.faults.echo import FATAL, ONCE, SAFE
from tests.faults.history import OPEN, Accepted, Event, Posted, Read, Refused, Unanswered
from tests.faults.rogue import SAFE as HTTP_SAFE

TRIES = 150
PAUSE_S = 0.3
DRAIN_S = 110.0
"""Longer than any request's deadline in these tests."""
WAIT_S = 3.0
ANSWERED_S = 10.0
AT_ONCE = 16
UNDOCUMENTED = "undocumented answer"
IDEMPOTENT = {SAFE, FATAL, HTTP_SAFE}


@dataclass(slots=True, kw_only=True)
class Order:
    """One request as its client knows it. `to` is the gateway that is asked first."""

    key: str
    nonce: str
    capability: str = SAFE
    work_s: float = 0.02
    wait_s: float = 0.0
    act: str | None = None
    """What its agent is to do wrong."""
    to: int = 0
    request_id: str | None = None
    is_ended: bool = False
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """What is posted; the capability is named, so that nothing depends on understanding."""
        act = {} if self.act is None else {"act": self.act}
        return {
            "message": f"echo {self.nonce}",
            "capability": self.capability,
            "context": {"nonce": self.nonce, "work_s": self.work_s, **act},
            "wait_s": self.wait_s,
        }


class Load:
    """Every client of one run. A request that was refused or not answered is posted again with its key."""

    def __init__(self, urls: Sequence[str], client: httpx2.AsyncClient, seed: int = 1) -> None:
        self.events: list[Event] = []
        self.orders: list[Order] = []
        self._urls = tuple(urls)
        self._client = client
        self._clock = SystemClock()
        self._chance = random.Random(seed)

    def order(self, **wishes: Any) -> Order:
        """A new request, not posted yet."""
        made = Order(key=new_id(), nonce=new_id(), **wishes)
        self.orders.append(made)
        return made

    async def accepted(self, count: int, **wishes: Any) -> list[Order]:
        """So many requests, posted at once and accepted."""
        made = [self.order(**wishes) for _ in range(count)]
        await asyncio.gather(*(self.post(order) for order in made))
        assert all(order.request_id for order in made), "not accepted in time"
        return made

    async def post(self, order: Order, tries: int = TRIES, seconds: float = ANSWERED_S) -> None:
        """Post until it is accepted, to the gateways in turn; a try takes `seconds` at the most."""
        self.events.append(
            Posted(
                time=self._clock.monotonic(),
                key=order.key,
                nonce=order.nonce,
                repeatable=order.capability in IDEMPOTENT,
            )
        )
        for tried in range(tries):
            if tried:
                await self._clock.sleep(PAUSE_S)
            url = self._urls[(order.to + tried) % len(self._urls)]
            if await self._try(order, url, seconds):
                return

    async def _try(self, order: Order, url: str, seconds: float) -> bool:
        headers = {"Idempotency-Key": order.key}
        if not order.wait_s:
            headers["Prefer"] = "respond-async"
        try:
            reply = await self._client.post(
                f"{url}/v1/chat", json=order.body, headers=headers, timeout=seconds
            )
        except httpx2.HTTPError:
            self.events.append(Unanswered(time=self._clock.monotonic(), key=order.key))
            return False
        now = self._clock.monotonic()
        if reply.status_code not in {200, 202}:
            self.events.append(Refused(time=now, key=order.key, code=_code_of(reply)))
            return False
        document = reply.json()
        order.request_id = document["request_id"]
        self.events.append(Accepted(time=now, key=order.key, request_id=document["request_id"]))
        if reply.status_code == 200:
            self._note(order, document)
        return True

    @asynccontextmanager
    async def flowing(self, clients: int = 6, *, most: int = 400) -> AsyncIterator[None]:
        """Post beside the block, `most` requests at the most, and until each is accepted."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(self._flow(stop, number, most // clients))
            try:
                yield
            finally:
                stop.set()

    async def _flow(self, stop: asyncio.Event, number: int, most: int) -> None:
        for posted in range(most):
            if stop.is_set():
                return
            order = self.order(
                capability=self._chance.choice([SAFE, ONCE]),
                work_s=self._chance.choice([0.0, 0.02, 0.1]),
                wait_s=WAIT_S if number % 2 else 0.0,
                to=number + posted,
            )
            await self.post(order)
            await self._clock.sleep(self._chance.uniform(0.02, 0.12))

    async def show(self, path: str, gateway: int = 0) -> httpx2.Response:
        """What a gateway answers to a plain GET; raises where it doesn't answer."""
        return await self._client.get(f"{self._urls[gateway]}{path}")

    async def ask(self, message: str, **fields: object) -> str:
        """Post a message that no order stands for; the id of the accepted request."""
        headers = {"Prefer": "respond-async"}
        reply = await self._client.post(
            f"{self._urls[0]}/v1/chat", json={"message": message, **fields}, headers=headers
        )
        assert reply.status_code == 202, reply.text
        return str(reply.json()["request_id"])

    async def read(self, order: Order, url: str | None = None) -> bool:
        """Read a request once; whether it has ended."""
        where = url or self._chance.choice(self._urls)
        try:
            reply = await self._client.get(f"{where}/v1/requests/{order.request_id}")
        except httpx2.HTTPError:
            return False
        if reply.status_code != 200:
            return False
        document = reply.json()
        if document["status"] == OPEN:
            return False
        self._note(order, document)
        return True

    async def ended(self, order: Order, seconds: float = DRAIN_S) -> dict[str, Any]:
        """The request once it has ended; fails when time is up."""
        until = self._clock.monotonic() + seconds
        while not order.is_ended:
            assert self._clock.monotonic() < until, f"{order.request_id} did not end"
            if not await self.read(order):
                await self._clock.sleep(0.1)
        return order.answer

    async def drain(self, seconds: float = DRAIN_S) -> None:
        """Wait until every accepted request has ended or time is up."""
        until = self._clock.monotonic() + seconds
        unposted = [order for order in self.orders if order.request_id is None]
        await asyncio.gather(*(self.post(order, tries=20) for order in unposted))
        while waiting := [o for o in self.orders if o.request_id and not o.is_ended]:
            if self._clock.monotonic() > until:
                return
            if not any(await self._each(waiting, lambda _, order: self.read(order))):
                await self._clock.sleep(0.2)

    async def read_all(self) -> None:
        """Read every request once more, at the gateways in turn: what ended must not have changed."""
        known = [order for order in self.orders if order.request_id]
        await self._each(known, lambda number, order: self.read(order, self._urls[number % len(self._urls)]))

    @staticmethod
    async def _each(
        orders: Sequence[Order], do: Callable[[int, Order], Coroutine[Any, Any, bool]]
    ) -> list[bool]:
        """Do something with each of them, a few at a time."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, order: Order) -> bool:
            async with places:
                return await do(number, order)

        return await asyncio.gather(*(one(number, order) for number, order in enumerate(orders)))

    def _note(self, order: Order, document: dict[str, Any]) -> None:
        (part,) = document["parts"]
        data = (part["result"] or {}).get("data") or {}
        order.is_ended, order.answer = True, document
        self.events.append(
            Read(
                time=self._clock.monotonic(),
                request_id=document["request_id"],
                status=document["status"],
                document=json.dumps(document, sort_keys=True),
                attempts=part["attempts"],
                nonce=data.get("nonce"),
                run=data.get("run"),
            )
        )


def _code_of(reply: httpx2.Response) -> str:
    """The stable code of a problem; what is no problem document, or asks to wait no time, is quoted."""
    if reply.status_code in {429, 503} and "Retry-After" not in reply.headers:
        return f"{UNDOCUMENTED} {reply.status_code} without Retry-After"
    try:
        return str(reply.json()["code"])
    except (ValueError, KeyError):
        return f"{UNDOCUMENTED} {reply.status_code}: {reply.text[:200]}"
