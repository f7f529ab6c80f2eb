"""An idempotency key gives its first request, whether this replica has met it before or not."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from dispatcher import records
from dispatcher.assembly.running import Running, local_settings, open_dispatcher
from dispatcher.dispatch.lifecycle.request import ChatMessage
from dispatcher.dispatch.seen_keys import SeenKeys
from dispatcher.errors import RequestError
from dispatcher.registry.access import Identity, Role

SHOP = Identity(role=Role.CALLER, subject="shop", grants=None)
MESSAGE = ChatMessage(message="hello", environment="production", idempotency_key="k", body_digest="one")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with open_dispatcher(local_settings(tmp_path)) as running:
        yield running


@pytest.mark.parametrize("remembers", [True, False])
async def test_a_key_used_again_gives_its_first_request(running: Running, remembers: bool):
    dispatcher = running.dispatcher
    first = await dispatcher.submit(MESSAGE, SHOP)

    again = replace(dispatcher, seen=dispatcher.seen if remembers else SeenKeys())
    second = await again.submit(MESSAGE, SHOP)

    assert (first.replayed, second.replayed) == (False, True)
    assert first.request_id == second.request_id


@pytest.mark.parametrize("remembers", [True, False])
async def test_a_key_used_with_another_body_is_refused(running: Running, remembers: bool):
    dispatcher = running.dispatcher
    await dispatcher.submit(MESSAGE, SHOP)

    again = replace(dispatcher, seen=dispatcher.seen if remembers else SeenKeys())

    with pytest.raises(RequestError) as refused:
        await again.submit(records.replace(MESSAGE, body_digest="two"), SHOP)
    assert refused.value.error_code == "idempotency_key_reused"
