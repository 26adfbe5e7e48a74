"""Who is who: tenants, job types and keys, kept in memory and refreshed from the store.

The hot path asks by dictionary only. A key is checked against the store at most once every few
seconds, so a revoked key stops working within that time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.keys import ApiKey
from fairway.core.tenant import Tenant
from fairway.runtime.clock import Clock
from fairway.store import tenants as store
from fairway.store.database import DISCONNECTED, Database
from fairway.store.tenants import StoredKey

REFRESH_SECONDS = 2.0
KEY_TRUST_US = 5_000_000
KEYS_REMEMBERED = 200_000
JOB_TYPES_MAX = 10_000


class Principal(NamedTuple):
    """Who a key stands for. Identity comes from here and from nowhere else."""

    key_id: str
    scope: str
    tenant: Tenant | None


class Directory:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.tenants: dict[int, Tenant] = {}
        self.tenant_ids: dict[str, int] = {}
        self.type_ids: dict[str, int] = {}
        self.type_names: dict[int, str] = {}
        self._keys: dict[str, tuple[int, Principal | None]] = {}
        self._changed_since = datetime(2000, 1, 1, tzinfo=UTC)
        self.on_tenant: Callable[[Tenant], None] = lambda tenant: None

    async def run_once(self, now_us: int) -> float:
        """Read what changed; a loop calls this."""
        async with self._database.calm() as connection:
            changed, self._changed_since = await store.changed_tenants(
                connection, self._changed_since
            )
        for tenant in changed:
            self._learn_tenant(tenant)
        return REFRESH_SECONDS

    def _learn_tenant(self, tenant: Tenant) -> None:
        if self.tenants.get(tenant.id) != tenant:
            self.tenants[tenant.id] = tenant
            self.tenant_ids[tenant.name] = tenant.id
            self.on_tenant(tenant)

    # -- job types ---------------------------------------------------------------------------

    async def load_types(self) -> None:
        async with self._database.calm() as connection:
            self._learn_types(await store.all_job_types(connection))

    async def know_types(self, names: Iterable[str]) -> None:
        """Make sure that every one of these names has its number."""
        missing = sorted({name for name in names if name not in self.type_ids})
        if not missing:
            return
        if len(self.type_ids) + len(missing) > JOB_TYPES_MAX:
            raise InvalidRequest(
                f"There are {len(self.type_ids)} job types already; a type is a kind of work, not"
                " a place for data. Put what varies into the payload.",
                code="TOO_MANY_JOB_TYPES",
                field="/type",
            )
        async with self._database.calm() as connection:
            self._learn_types(await store.register_job_types(connection, missing))

    def _learn_types(self, types: dict[str, int]) -> None:
        self.type_ids.update(types)
        self.type_names.update({number: name for name, number in types.items()})

    async def type_name(self, number: int) -> str:
        if number not in self.type_names:
            await self.load_types()
        return self.type_names.get(number, f"type-{number}")

    # -- keys --------------------------------------------------------------------------------

    def known(self, text: str) -> Principal | None:
        """The principal of a key that was checked a moment ago: the hot path's only question."""
        found = self._keys.get(text)
        if found is None or found[0] < self._clock.now_us():
            return None
        return found[1]

    async def authenticate(self, text: str) -> Principal | None:
        key = ApiKey.parse(text)
        if key is None:
            return None  # wrong shape or checksum: not worth a question to the store
        try:
            async with self._database.calm() as connection:
                stored = await store.read_key(connection, key.id)
        except DISCONNECTED as error:
            raise Unavailable() from error
        principal = await self._principal(key, stored)
        if len(self._keys) >= KEYS_REMEMBERED:
            self._keys.clear()
        self._keys[text] = (self._clock.now_us() + KEY_TRUST_US, principal)
        return principal

    async def _principal(self, key: ApiKey, stored: StoredKey | None) -> Principal | None:
        if stored is None or stored.scope != key.scope or not key.matches(stored.secret_hash):
            return None
        if stored.tenant is not None and stored.tenant not in self.tenants:
            await self.run_once(0)
        tenant = self.tenants.get(stored.tenant) if stored.tenant is not None else None
        return Principal(key.id, key.scope, tenant)

    # -- what operators do -------------------------------------------------------------------

    async def add_tenant(self, name: str, weight: int, depth_limit: int) -> Tenant | None:
        async with self._database.calm() as connection:
            tenant = await store.add_tenant(
                connection, name, weight=weight, depth_limit=depth_limit
            )
        if tenant is not None:
            self._learn_tenant(tenant)
        return tenant

    async def add_key(self, key: ApiKey, tenant: int | None) -> None:
        async with self._database.calm() as connection:
            await store.add_key(connection, StoredKey(key.id, key.scope, tenant, key.secret_hash))

    async def revoke_key(self, key_id: str) -> bool:
        self._keys.clear()
        async with self._database.calm() as connection:
            return await store.revoke_key(connection, key_id)
