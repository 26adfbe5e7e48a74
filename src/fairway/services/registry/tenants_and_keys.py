"""Who is who: tenants, job types and keys, kept in memory and refreshed from the store.

The hot path asks by dictionary only. A key is checked against the store once; which keys were
revoked or ran out since is asked every few seconds, so such a key stops working within that time,
and whoever keeps something going under it is told. The same goes for tenants that are suspended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeAlias

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.ids import ShardId, TenantId, TypeId
from fairway.core.keys import ApiKey, KeyFacts
from fairway.core.pools import PoolTable
from fairway.core.tenant import Tenant, TenantFilter, TenantSettings, Tier
from fairway.runtime.loops import Step
from fairway.services.backpressure.key_guesses import Guesses, too_many
from fairway.services.registry.absent_keys import AbsentKeys
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.registry.key_lookup import KeyLookup
from fairway.services.registry.principal import KeyWish, Principal
from fairway.services.registry.refusals import refuse_still, refuse_unknown_tier
from fairway.services.registry.tenant_moves import refuse_target
from fairway.services.registry.tenant_parts import TenantParts
from fairway.services.registry.type_names import TypeNames
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import tenants as store
from fairway.store.registry import tiers
from fairway.store.registry.tenant_states import keys_of
from fairway.store.registry.tenants import StoredKey

REFRESH_SECONDS = 2.0
KEYS_REMEMBERED = 200_000
NO_HASH = bytes(32)
USES_A_ROUND_MAX = 2_000  # keys whose use is written down at once
FEW_USES = 50  # so many are written with the next look; more of them cost, and can wait
USES_REST_SECONDS = 60.0
TENANT_MAX = (1 << 31) - 1  # the store knows no larger number
NOBODY = TenantId(-1)
_PLAIN = TenantSettings()
_LIVING = TenantFilter()
_ANY_KEY = KeyWish()

#: Tenants as they were read, and whose key is each of those that are not active.
OnStates: TypeAlias = Callable[[Sequence[Tenant], Mapping[str, TenantId]], Awaitable[None]]


class Directory:
    def __init__(
        self,
        database: Database,
        pools: PoolTable,
        names: TypeNames,
        *,
        on_tenant: Callable[[Tenant], None],
        on_revoked: Callable[[Collection[str]], Awaitable[None]],
        on_states: OnStates,
        guesses: Guesses | None = None,
        audit_log: AuditLog = USUAL_LOG,
    ) -> None:
        self._database = database
        self.audit_log = audit_log
        self.guesses = guesses
        self.pools = pools
        self._on_tenant = on_tenant  # who is new here, or has other terms
        self._on_revoked = on_revoked  # the ids of keys; may be told again
        self._on_states = on_states  # tenants that may have another state, and their keys
        self.tenants: dict[TenantId, Tenant] = {}
        self.tenant_ids: dict[str, TenantId] = {}
        self.parts = TenantParts(self.tenants)
        self.with_job_events: set[TenantId] = set()  # who hears what becomes of its jobs
        self.names = names
        self.type_ids = names.ids
        self.type_names = names.by_id
        self._keys: dict[str, Principal] = {}  # by the whole text of the key
        self._stored_keys: dict[str, StoredKey] = {}  # by its public part, read ahead
        self._absent_keys = AbsentKeys()
        # Ids of keys that opened something since it was written down, the longest ago first: of a
        # set the same ones would come first round after round, and the others never.
        self._used: dict[str, None] = {}
        self._changed_since = datetime(2000, 1, 1, tzinfo=UTC)
        self._one_reads = asyncio.Lock()
        self._key_lookup = KeyLookup(database)

    def steps(self) -> dict[str, Step]:
        return {"directory": self.run_once, "key uses": self.write_uses}

    async def run_once(self, now_us: int) -> float:
        """Read what changed; a loop calls this."""
        async with self._one_reads:  # what was read first must not be learnt last
            await self._read_changes()
        return REFRESH_SECONDS

    async def refresh(self) -> None:
        """Read what changed, for somebody who waits for it."""
        with told_if_away:
            await self.run_once(0)

    async def _read_changes(self) -> None:
        async with self._database.background() as connection:
            moves = self._database.fence.known
            since = self._changed_since
            news = await store.directory_news(connection, since)
            changed = await store.changed_tenants(connection, since) if news.tenants else []
            limit = KEYS_REMEMBERED
            keys = await store.changed_keys(connection, since, limit) if news.keys else []
            revoked = set(await store.revoked_keys(connection, since) if news.revoked else ())
            stopped = {tenant.id for tenant in changed if not tenant.is_active}
            owners = await keys_of(connection, stopped) if stopped else {}
        if moves != self._database.fence.known:  # what was learnt meanwhile may be newer than this
            await self._read_changes()  # who waits for what changed does not go on without it
            return
        self._changed_since = news.now  # only now: what a broken connection hid is asked for again
        for tenant in changed:
            self.learn_tenant(tenant)
        self._stored_keys.update((key.id, key) for key in keys)
        for key in keys:
            self._absent_keys.discard(key.id)
        if still := {tenant.id for tenant in changed if tenant.is_still}:
            self._keys = {t: one for t, one in self._keys.items() if one.holder not in still}
        if revoked:
            await self._forget_keys(revoked)
        await self._on_states(changed, owners)

    async def write_uses(self, now_us: int) -> float:
        """A loop of its own: a store that takes no write delays no news of a revoked key.

        Some a round; a use that is told a little later, or not at all, is no loss.
        """
        used = list(islice(self._used, USES_A_ROUND_MAX))
        if used:
            async with self._database.background() as connection:
                await store.keys_used(connection, used)
            for key_id in used:
                self._used.pop(key_id, None)
        return REFRESH_SECONDS if len(used) <= FEW_USES else USES_REST_SECONDS

    async def _forget_keys(self, revoked: set[str]) -> None:
        for key_id in revoked:
            self._stored_keys.pop(key_id, None)
        self._keys = {t: p for t, p in self._keys.items() if p.key_id not in revoked}
        await self._on_revoked(revoked)

    async def learn_moves(self, connection: Connection, known: int) -> int:
        """All tenants that move or were moved, if more were asked for than known; how many were."""
        if (asked := await store.moves_asked(connection)) > known:
            for tenant in await store.moved_tenants(connection):
                self.learn_tenant(tenant)
        return asked

    def learn_tenant(self, tenant: Tenant) -> None:
        if tenant.parts:
            tenant = self.parts.learn(tenant)
        if self.tenants.get(tenant.id) != tenant:
            self.tenants[tenant.id] = tenant
            self.tenant_ids[tenant.name] = tenant.id
            if tenant.job_events:
                self.with_job_events.add(tenant.id)
            else:
                self.with_job_events.discard(tenant.id)
            self._on_tenant(tenant)

    def tell_all(self) -> None:
        """Every tenant's terms once more, for a pool that was not known when they came."""
        for tenant in self.tenants.values():
            self._on_tenant(tenant)

    def name_of(self, tenant: TenantId) -> str:
        """A tenant's name on the wire; one that another server made a moment ago has a number."""
        known = self.tenants.get(tenant)
        return known.name if known else f"#{tenant}"

    def id_of(self, name: str) -> TenantId:
        """The tenant of a name on the wire, or NOBODY."""
        if name.startswith("#") and name[1:].isdecimal() and len(name) <= len("#2147483647"):
            number = TenantId(int(name[1:]))
            return number if number <= TENANT_MAX else NOBODY
        return self.tenant_ids.get(name, NOBODY)

    # -- job types ---------------------------------------------------------------------------

    async def know_types(
        self, names: Iterable[str], tenant: TenantId | None = None
    ) -> dict[str, TypeId]:
        """The number of every one of these names, which this tenant uses; None is the house."""
        return await self.names.know(tenant, names)

    async def find_type(self, name: str, asker: TenantId | None = None) -> TypeId | None:
        """A job type that any server knows, let go or not; None: unknown. `asker` is a tenant."""
        return await self.names.find(name, asker)

    async def type_name(self, number: TypeId) -> str:
        known = self.type_names.get(number)
        return (await self.names.names_of([number]))[number] if known is None else known

    # -- keys --------------------------------------------------------------------------------

    def known(self, text: str) -> Principal | None:
        """The principal of a key that was checked before: the hot path's only question."""
        if (principal := self._keys.get(text)) is not None:
            self._used[principal.key_id] = None
        return principal

    async def authenticate(
        self, text: str, address: str = "", *, is_complete: bool = True
    ) -> Principal | None:
        """Who holds this key; guesses are slowed. `is_complete`: no key is still to come here."""
        key = ApiKey.parse(text)
        if key is None:
            return None  # wrong shape or checksum: not worth a question to the store
        wait_seconds = self.guesses.wait_seconds(address) if self.guesses else 0.0
        principal = await self._found(text, key, may_ask=not wait_seconds)
        if principal is None and not is_complete:
            self._absent_keys.discard(key.id)
        elif principal is None and self.guesses is not None:
            if wait_seconds:
                raise too_many(wait_seconds)
            self.guesses.failed(address)
        return principal

    async def is_valid(self, key_id: str) -> bool:
        """Whether a key that was shown a while ago still opens anything."""
        return key_id in self._stored_keys or await self._key_lookup.read(key_id) is not None

    async def holder_of(self, key_id: str) -> Principal | None:
        """Who a key stands for that was shown a while ago; None: it opens nothing any more."""
        stored = self._stored_keys.get(key_id) or await self._key_lookup.read(key_id)
        return None if stored is None else await self._holder(stored)

    async def _found(self, text: str, key: ApiKey, *, may_ask: bool) -> Principal | None:
        stored = self._stored_keys.get(key.id)
        if stored is None and may_ask and key.id not in self._absent_keys:
            stored = await self._key_lookup.read(key.id)
            if stored is None:  # should it ever be made, it is read ahead like any other
                self._absent_keys.add(key.id)
        principal = await self._principal(key, stored)
        if len(self._keys) >= KEYS_REMEMBERED:
            self._keys = {}
        if principal is not None:
            self._keys[text] = principal
            self._used[principal.key_id] = None
        return principal

    async def _principal(self, key: ApiKey, stored: StoredKey | None) -> Principal | None:
        # The same work for an id that nobody has: how long a refusal takes tells nothing.
        is_right = key.matches(NO_HASH if stored is None else stored.secret_hash)
        if stored is None or stored.scope != key.scope or not is_right:
            return None
        return await self._holder(stored)

    async def _holder(self, stored: StoredKey) -> Principal | None:
        if stored.tenant is not None and stored.tenant not in self.tenants:
            await self.run_once(0)
        tenant = None if stored.tenant is None else self.tenants.get(stored.tenant)
        if stored.tenant is not None and (tenant is None or tenant.state == "deleted"):
            return None  # still unknown here: a key without a tenant would have all rights
        if tenant is not None:
            refuse_still(tenant, stored.scope)  # it is not remembered, so it is asked each time
        return Principal.of(stored, tenant)

    # -- what operators do -------------------------------------------------------------------

    async def add_tenant(
        self,
        name: str,
        settings: TenantSettings = _PLAIN,
        actor: Actor = PLATFORM,
        shard: ShardId | None = None,
    ) -> Tenant | None:
        """A new tenant, in this shard or where its number leads; None: the name is taken."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            await refuse_unknown_tier(connection, settings.tier)
            if shard is not None:
                await refuse_target(connection, shard)
            tenant = await store.add_tenant(connection, name, settings, shard)
            if tenant is not None:
                placed = {} if shard is None else {"shard": shard}
                act = Act("add_tenant", name, tenant.id, after=_own(settings) | placed)
                await self.audit_log.add(connection, actor, act)
        if tenant is not None:
            self.learn_tenant(tenant)
        return tenant

    async def list_tenants(
        self, after: str, limit: int, wanted: TenantFilter = _LIVING
    ) -> list[Tenant]:
        async with told_if_away, self._database.people() as connection:
            return await store.list_tenants(connection, after, limit, wanted)

    async def list_keys(
        self, after: str, limit: int, scope: str | None, tenant: TenantId | None
    ) -> list[KeyFacts]:
        async with told_if_away, self._database.people() as connection:
            return await store.list_keys(connection, after, limit, scope, tenant)

    async def change_tenant(
        self, name: str, changes: Mapping[str, Any], actor: Actor = PLATFORM
    ) -> Tenant | None:
        """New terms, which hold for the backlog already queued; elsewhere within a refresh."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            if "tier" in changes:
                await refuse_unknown_tier(connection, changes["tier"])
            changed = await store.change_tenant(connection, name, changes)
            if changed is None:
                return None
            before, after = map(_fields, changed)
            act = Act("change_tenant", name, self.tenant_ids.get(name), before, after)
            await self.audit_log.add(connection, actor, act)
        await self.refresh()
        return self.tenants[self.tenant_ids[name]]

    async def tiers(self) -> list[Tier]:
        async with told_if_away, self._database.people() as connection:
            return await tiers.all_tiers(connection)

    async def put_tier(self, tier: Tier, actor: Actor = PLATFORM) -> None:
        async with told_if_away, self._database.people() as connection, connection.transaction():
            known = {one.name: one._asdict() for one in await tiers.all_tiers(connection)}
            await tiers.put_tier(connection, tier)
            before = known.get(tier.name, {})
            act = Act("put_tier", tier.name, before=before, after=tier._asdict())
            await self.audit_log.add(connection, actor, act)
        await self.refresh()

    async def add_key(
        self,
        key: ApiKey,
        tenant: TenantId | None,
        actor: Actor = PLATFORM,
        wish: KeyWish = _ANY_KEY,
    ) -> None:
        async with told_if_away, self._database.people() as connection, connection.transaction():
            await store.add_key(connection, _row(key, tenant, wish), wish.expires_at)
            act = Act("add_key", key.id, tenant, after=self._said_key(key, tenant, wish))
            await self.audit_log.add(connection, actor, act)

    async def rotate_key(
        self, old: str, new: Callable[[str], ApiKey], overlap: timedelta, actor: Actor = PLATFORM
    ) -> tuple[ApiKey, KeyFacts] | None:
        """A new key for the same; the old one ends after the overlap. None: no such key."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            facts = await store.key_facts(connection, old)
            if facts is None:
                return None
            key, ends_at = new(facts.scope), await store.store_now(connection) + overlap
            bounds = facts.permissions, facts.pools, facts.types, facts.only_tenants
            wish = KeyWish(facts.name, None, *bounds)
            await store.add_key(connection, _row(key, facts.tenant, wish))
            await store.expire_key(connection, old, ends_at)
            ends_at = ends_at if facts.expires_at is None else min(ends_at, facts.expires_at)
            before = {"id": old, "old_key_ends_at": facts.expires_at}
            after = {"id": key.id, "old_key_ends_at": ends_at}
            act = Act("rotate_key", key.id, facts.tenant, before, after)
            await self.audit_log.add(connection, actor, act)
        return key, facts

    def _said_key(self, key: ApiKey, tenant: TenantId | None, wish: KeyWish) -> dict[str, Any]:
        whose = None if tenant is None else self.name_of(tenant)
        said = {"scope": key.scope, "tenant": whose, **wish._asdict()}
        if wish.only_tenants:
            said["only_tenants"] = [self.name_of(one) for one in wish.only_tenants]
        return {name: value for name, value in said.items() if value}

    async def revoke_key(self, key_id: str, actor: Actor = PLATFORM) -> bool:
        """Here at once, on other servers within their next refresh."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            facts = await store.key_facts(connection, key_id)  # None: it ran out
            was_valid = await store.revoke_key(connection, key_id)
            if was_valid:
                whose = None if facts is None else facts.tenant
                before = {"is_valid": facts is not None, "name": facts.name if facts else ""}
                act = Act("revoke_key", key_id, whose, before, before | {"is_valid": False})
                await self.audit_log.add(connection, actor, act)
        await self._forget_keys({key_id})
        return was_valid


def _fields(settings: TenantSettings) -> dict[str, Any]:
    """For the audit; None is the tier's."""
    return settings._asdict() | {"reserved": dict(settings.reserved)}


def _own(settings: TenantSettings) -> dict[str, Any]:
    return {name: value for name, value in _fields(settings).items() if value}


def _row(key: ApiKey, tenant: TenantId | None, wish: KeyWish) -> StoredKey:
    limits = wish.permissions, wish.pools, wish.types
    return StoredKey(
        key.id, key.scope, tenant, key.secret_hash, *limits, wish.name, wish.only_tenants
    )
