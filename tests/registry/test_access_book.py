"""Authentication and grants from memory."""

import asyncio

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import CallerId, Capability
from dispatcher.registry.access import Role
from dispatcher.registry.access_book import AccessBook
from dispatcher.registry.api_key import new_key

SHOP, QUERY = CallerId("shop"), Capability("order.query")


@pytest.fixture
def book(access, clock):
    return AccessBook(access, clock, development=False)


@pytest.fixture
def issue(access):
    async def add(role, subject):
        key, text = new_key(role, subject)
        await access.add_key(key)
        return key, text

    return add


async def test_a_caller_has_exactly_its_grants(book, access, issue):
    _, text = await issue(Role.CALLER, "shop")
    await access.set_grants(SHOP, frozenset({QUERY}))
    await book.refresh()

    identity = await book.authenticate(text)

    assert identity is not None
    assert (identity.role, identity.caller_id, identity.grants) == (Role.CALLER, SHOP, {QUERY})
    assert identity.allows(QUERY)
    assert not identity.allows(Capability("order"))
    assert book.grants(SHOP) == {QUERY}
    assert book.grants(CallerId("stranger")) == frozenset()


async def test_an_admin_may_call_everything_and_an_agent_nothing(book, access, issue):
    _, admin = await issue(Role.ADMIN, "ops")
    _, agent = await issue(Role.AGENT, "order")
    await access.set_grants(CallerId("order"), frozenset({QUERY}))
    await book.refresh()

    assert (await book.authenticate(admin)).grants is None
    assert (await book.authenticate(agent)).grants == frozenset()
    assert book.grants(CallerId("ops")) is None


async def test_a_caller_with_an_admins_name_has_no_more_than_its_grants(book, issue):
    await issue(Role.ADMIN, "ops")
    await issue(Role.CALLER, "ops")
    await book.refresh()

    assert book.grants(CallerId("ops")) == frozenset()


async def test_unknown_wrong_and_revoked_keys_are_nobody(book, access, issue):
    key, text = await issue(Role.CALLER, "shop")
    _, stranger = new_key(Role.CALLER, "shop")
    await book.refresh()
    forged = f"ard_{key.key_id}_{stranger.rpartition('_')[2][:43]:a<43}"

    for bearer in (None, "", "nonsense", stranger, forged):
        assert await book.authenticate(bearer) is None
    assert await book.authenticate(text) is not None
    await access.revoke_key(key.key_id)
    await book.refresh()
    assert await book.authenticate(text) is None


async def test_a_copy_that_is_too_old_lets_nobody_in(book, issue, clock):
    _, text = await issue(Role.CALLER, "shop")
    with pytest.raises(UnavailableError):
        await book.authenticate(text)
    await book.refresh()
    clock.now += 30.0
    assert await book.authenticate(text) is not None

    clock.now += 0.1

    with pytest.raises(UnavailableError):
        await book.authenticate(text)
    with pytest.raises(UnavailableError):
        book.grants(SHOP)


async def test_an_agent_registers_with_its_own_key_only(book, issue, registration):
    texts = {
        subject: (await issue(role, subject))[1]
        for role, subject in (
            (Role.AGENT, "order"),
            (Role.AGENT, "faq"),
            (Role.ADMIN, "ops"),
            (Role.CALLER, "shop"),
        )
    }
    await book.refresh()

    async def may(key):
        return await book.may_register(registration("order").model_copy(update={"key": key}))

    answers = [await may(texts[subject]) for subject in ("order", "faq", "ops", "shop")]
    assert answers == [True, False, False, False]
    assert not await may(None)


async def test_a_key_younger_than_the_copy_is_found_in_the_database(book, issue, clock):
    await book.refresh()
    _, text = await issue(Role.CALLER, "shop")

    at_once = await book.authenticate(text)
    clock.now += 0.2
    later = await book.authenticate(text)

    assert at_once is None
    assert later is not None


async def test_in_development_everybody_is_one_identity_that_may_do_everything(access, clock, registration):
    book = AccessBook(access, clock, development=True)
    await book.refresh()

    for bearer in (None, "", "anything"):
        identity = await book.authenticate(bearer)
        assert identity is not None
        assert (identity.role, identity.subject, identity.every_role) == (Role.CALLER, "development", True)
        assert identity.allows(QUERY)
    assert book.grants(CallerId("development")) is None
    assert await book.may_register(registration())


class HeldAccess:
    """Reads the keys when a load begins and gives them when it is let go; counts loads."""

    def __init__(self, access):
        self._access = access
        self.loads = self.at_once = self.most_at_once = 0
        self.held = False
        self.began = asyncio.Event()
        self.let_go = asyncio.Event()
        self.failure = None

    async def release(self):
        self.let_go.set()

    async def load(self):
        self.loads += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            snapshot = await self._access.load()
            self.began.set()
            if self.held:
                await self.let_go.wait()
            if self.failure is not None:
                raise self.failure
            return snapshot
        finally:
            self.at_once -= 1


@pytest.fixture
def held(access):
    return HeldAccess(access)


@pytest.fixture
def held_book(held, clock):
    return AccessBook(held, clock, development=False)


def strangers(count):
    return [new_key(Role.CALLER, "shop")[1] for _ in range(count)]


async def test_many_unknown_keys_at_once_cost_one_load(held_book, held, clock):
    await held_book.refresh()
    clock.now += 1.0
    held.held = True
    held.began.clear()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = [group.create_task(held_book.authenticate(key)) for key in strangers(200)]
        await held.began.wait()
        clock.now += 1.0
        held.let_go.set()

    assert [task.result() for task in asked] == [None] * 200
    assert held.loads == 2


async def test_whoever_asks_while_a_load_runs_shares_the_next_one(held_book, held, issue, clock):
    await held_book.refresh()
    clock.now += 1.0
    held.held = True
    held.began.clear()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(held_book.refresh())
        await held.began.wait()
        _, younger = await issue(Role.CALLER, "shop")
        clock.now += 1.0
        asked = [group.create_task(held_book.authenticate(key)) for key in (younger, *strangers(50))]
        held.let_go.set()

    assert asked[0].result() is not None
    assert (held.loads, held.most_at_once) == (3, 1)


async def test_a_revoked_key_stays_revoked_though_an_earlier_load_ends_late(held_book, held, access, issue):
    key, text = await issue(Role.CALLER, "shop")
    held.held = True

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(held_book.refresh())
        await held.began.wait()
        await access.revoke_key(key.key_id)
        held.held = False
        group.create_task(held_book.refresh())
        group.create_task(held.release())  # Runs when the later load ended, or waits.

    assert await held_book.authenticate(text) is None


async def test_where_the_database_fails_it_is_not_asked_by_each_who_waits(held_book, held, clock):
    await held_book.refresh()
    clock.now += 1.0
    held.failure = UnavailableError("down")

    found = await asyncio.gather(*map(held_book.authenticate, strangers(50)), return_exceptions=True)
    clock.now += 0.1
    with pytest.raises(UnavailableError):
        await held_book.authenticate(strangers(1)[0])

    assert {type(one) for one in found} == {UnavailableError}
    assert held.loads == 2
    held.failure = None
    clock.now += 0.1
    assert await held_book.authenticate(strangers(1)[0]) is None
    assert held.loads == 3
