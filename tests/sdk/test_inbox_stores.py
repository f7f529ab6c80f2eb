"""The inboxes that need no server, each under the whole suite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from tests.sdk.inbox_behaviour import InboxBehaviour, LastingInboxBehaviour


class TestMemoryInbox(InboxBehaviour):
    @pytest.fixture
    async def inbox(self) -> AsyncIterator[Inbox]:
        opened = MemoryInbox()
        assert opened.kind == "memory"
        yield opened
        await opened.aclose()


class TestSqliteInbox(LastingInboxBehaviour):
    @pytest.fixture
    async def inbox(self, tmp_path: Path) -> AsyncIterator[Inbox]:
        opened = await SqliteInbox.open(tmp_path / "inbox.sqlite")
        assert opened.kind == "sqlite"
        yield opened
        await opened.aclose()
