from dataclasses import replace

import pytest

from dispatcher.errors import DispatcherError
from dispatcher.identifiers import CallerId, Capability
from dispatcher.registry.access import ApiKey, Role
from dispatcher.store.access import SqlAccess
from dispatcher.store.engine import Database

SHOP = CallerId("shop")
KEY = ApiKey(key_id="k1", role=Role.CALLER, subject="shop", secret_sha256="ab" * 32)


def names(*capabilities: str) -> frozenset[Capability]:
    return frozenset(map(Capability, capabilities))


@pytest.fixture
def access(database: Database) -> SqlAccess:
    return SqlAccess(database)


async def test_keys_are_listed_in_order_of_creation(access: SqlAccess):
    await access.add_key(KEY)
    admin = ApiKey(key_id="k2", role=Role.ADMIN, subject="ops", secret_sha256="cd" * 32)
    await access.add_key(admin)

    assert await access.keys() == [KEY, admin]


async def test_a_key_id_is_stored_once(access: SqlAccess):
    await access.add_key(KEY)

    with pytest.raises(DispatcherError):
        await access.add_key(KEY)


async def test_a_revoked_key_stays_revoked_and_known(access: SqlAccess):
    await access.add_key(KEY)

    revoked = await access.revoke_key("k1")

    (found,) = (await access.load()).keys
    assert revoked
    assert found == replace(KEY, revoked=True)
    assert not await access.revoke_key("unknown")


async def test_setting_grants_replaces_exactly_the_callers_own(access: SqlAccess):
    await access.set_grants(SHOP, names("order.query", "faq.ask"))
    await access.set_grants(CallerId("other"), names("faq.ask"))

    await access.set_grants(SHOP, names("faq.ask", "promotion.query"))

    assert await access.grants(SHOP) == names("faq.ask", "promotion.query")
    assert await access.grants(CallerId("other")) == names("faq.ask")
    assert await access.grants(CallerId("unknown")) == names()


async def test_everything_is_loaded_at_once(access: SqlAccess):
    await access.add_key(KEY)
    await access.set_grants(SHOP, names("order.query", "faq.ask"))
    await access.set_grants(CallerId("other"), names())

    snapshot = await access.load()

    assert snapshot.keys == (KEY,)
    assert snapshot.grants == {SHOP: names("order.query", "faq.ask")}


async def test_grants_can_be_taken_away_altogether(access: SqlAccess):
    await access.set_grants(SHOP, names("order.query"))

    await access.set_grants(SHOP, names())

    assert await access.grants(SHOP) == names()
