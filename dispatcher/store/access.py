"""API keys and grants in SQL."""

from collections import defaultdict

from sqlalchemy import RowMapping, delete, insert, select, update

from dispatcher.identifiers import CallerId, Capability
from dispatcher.registry.access import AccessSnapshot, ApiKey, Role
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import api_keys, grants

_BY_CREATION = select(api_keys).order_by(api_keys.c.created_ms, api_keys.c.key_id)


class SqlAccess:
    """Implements `registry.access.AccessRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> AccessSnapshot:
        """See `AccessRepository.load`."""
        granted: defaultdict[CallerId, set[Capability]] = defaultdict(set)
        async with self._database.reading() as connection:
            keys = (await connection.execute(_BY_CREATION)).mappings().all()
            for caller, capability in await connection.execute(select(grants.c.caller, grants.c.capability)):
                granted[CallerId(caller)].add(Capability(capability))
        return AccessSnapshot(
            keys=tuple(map(_to_key, keys)),
            grants={caller: frozenset(names) for caller, names in granted.items()},
        )

    async def add_key(self, key: ApiKey) -> None:
        """See `AccessRepository.add_key`; raises DispatcherError where the id is taken."""
        values = {
            "key_id": key.key_id,
            "role": key.role,
            "subject": key.subject,
            "secret_sha256": key.secret_sha256,
            "revoked": key.revoked,
            "created_ms": now_ms(),
        }
        async with self._database.writing() as connection:
            await connection.execute(insert(api_keys).values(values))

    async def keys(self) -> list[ApiKey]:
        """See `AccessRepository.keys`."""
        async with self._database.reading() as connection:
            return [_to_key(row) for row in (await connection.execute(_BY_CREATION)).mappings()]

    async def revoke_key(self, key_id: str) -> bool:
        """See `AccessRepository.revoke_key`."""
        async with self._database.writing() as connection:
            revoked = await connection.execute(
                update(api_keys).where(api_keys.c.key_id == key_id).values(revoked=True)
            )
        return revoked.rowcount > 0

    async def grants(self, caller: CallerId) -> frozenset[Capability]:
        """See `AccessRepository.grants`."""
        async with self._database.reading() as connection:
            found = await connection.execute(select(grants.c.capability).where(grants.c.caller == caller))
            return frozenset(Capability(name) for name in found.scalars())

    async def set_grants(self, caller: CallerId, capabilities: frozenset[Capability]) -> None:
        """See `AccessRepository.set_grants`. Names granted before keep the time of their grant."""
        async with self._database.writing() as connection:
            before = await connection.execute(
                select(grants.c.capability).where(grants.c.caller == caller).with_for_update()
            )
            known = frozenset(before.scalars())
            await connection.execute(
                delete(grants).where(
                    grants.c.caller == caller, grants.c.capability.not_in(sorted(capabilities))
                )
            )
            for capability in sorted(capabilities - known):
                await connection.execute(
                    insert(grants).values(caller=caller, capability=capability, granted_ms=now_ms())
                )


def _to_key(row: RowMapping) -> ApiKey:
    return ApiKey(
        key_id=row["key_id"],
        role=Role(row["role"]),
        subject=row["subject"],
        secret_sha256=row["secret_sha256"],
        revoked=row["revoked"],
    )
