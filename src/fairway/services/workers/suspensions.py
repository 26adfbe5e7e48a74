"""Suspended and deleted tenants: nothing of theirs starts, goes on being told, or is run by them.

The directory tells of every tenant that it reads anew. Holds keep their jobs from starting, streams
and waits under their keys end, and so do sessions of their own workers, which may be found again
after a take-over; so all of them are looked for every few seconds. What shared workers run goes on
to its end, or is asked to stop, as the operator chose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from fairway.core.backlog.holds import MOVING, SUSPENDED, Hold
from fairway.core.errors import Forbidden
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant, suspended_sentence
from fairway.runtime.loops import WorkInParts
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.workers.revocation import Revocation, key_revoked, tenant_suspended

REST_SECONDS = 2.0
LOST = b'{"type":"WorkerLost","message":"The tenant whose worker ran this was suspended."}'


#: All holds that suspensions put on each of these tenants, in place of those before.
HoldTenants: TypeAlias = Callable[[Mapping[TenantId, tuple[Hold, ...]]], None]


class Suspensions:
    def __init__(self, dispatcher: Dispatcher, revocation: Revocation, hold: HoldTenants) -> None:
        self._dispatcher = dispatcher
        self._revocation = revocation
        self._hold = hold
        self._stopped: dict[TenantId, Tenant] = {}
        self._keys: dict[TenantId, set[str]] = {}  # of these: ids of theirs
        self._moving: set[TenantId] = set()  # to other shards: nothing of these starts, either

    async def learned(self, tenants: Sequence[Tenant], owners: Mapping[str, TenantId]) -> None:
        """Tenants as they are now, and keys of those that are stopped; may be told again."""
        known = self._stopped.keys() | self._moving
        changed = [one for one in tenants if one.is_still or one.id in known]
        if not changed:
            return
        self._hold({one.id: _holds_of(one) for one in changed})
        for one in changed:
            (self._moving.discard if one.moving_to is None else self._moving.add)(one.id)
            if one.is_active:
                self._stopped.pop(one.id, None)
                self._revocation.resumed(self._keys.pop(one.id, ()))
            else:
                self._stopped[one.id] = one
        self._refuse_keys(owners)
        await self._sweep()

    def _refuse_keys(self, owners: Mapping[str, TenantId]) -> None:
        for key, tenant in owners.items():
            self._keys.setdefault(tenant, set()).add(key)
        sentences = {key: self._sentence(tenant) for key, tenant in owners.items()}
        self._revocation.suspended(sentences)

    def _sentence(self, tenant: TenantId) -> str:
        return suspended_sentence(self._stopped[tenant].reason)

    def _refusal(self, tenant: TenantId) -> Forbidden:
        if self._stopped[tenant].state == "deleted":
            return key_revoked()  # as its next call will be
        return tenant_suspended(self._sentence(tenant))

    def deleted(self) -> list[Tenant]:
        """Those that nothing should be left of."""
        return [one for one in self._stopped.values() if one.state == "deleted"]

    def forget(self, tenant: TenantId) -> None:
        """Nothing is left of it, neither here nor in the store."""
        if self._stopped.pop(tenant, None) is not None:
            self._hold({tenant: ()})
            self._revocation.resumed(self._keys.pop(tenant, ()))

    async def run_once(self, now_us: int) -> float:
        """A loop: what came back since, with a shard that was taken over."""
        if self._stopped:
            await self._sweep()
        return REST_SECONDS

    async def _sweep(self) -> None:
        for session in self._dispatcher.all_sessions():
            if session.tenant in self._stopped:
                await self._revocation.end_session(session, self._refusal(session.tenant), LOST)
        cancelled = {one.id for one in self._stopped.values() if one.cancels_running}
        if cancelled:
            await self._cancel_runs(cancelled)

    async def _cancel_runs(self, tenants: set[TenantId]) -> None:
        work = WorkInParts()
        for lease in self._dispatcher.all_leases():
            if lease.job.tenant in tenants:
                self._dispatcher.cancel(lease.job.tenant, lease.job.id)
            await work.let_others()


def _holds_of(tenant: Tenant) -> tuple[Hold, ...]:
    if not tenant.is_still:
        return ()
    return (Hold(tenant.id, reason=MOVING if tenant.is_active else SUSPENDED),)
