"""What operators do to a tenant as a whole: suspend, resume, delete, restore.

Each is one transaction with its line in the audit, and told here at once; other servers read it
within their next refresh. What follows from a state is the business of `workers/suspensions.py`
and `maintenance/deleted_tenants.py`. Which states allow what is decided in `core/tenant.py`.
"""

from __future__ import annotations

from datetime import timedelta

from fairway.core.audit import PLATFORM, Act, Actor, Fields
from fairway.core.errors import Conflict, NotFound
from fairway.core.tenant import Tenant, TenantAct, TenantState, has_lapsed, state_after
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import tenant_states as store
from fairway.store.registry.tenant_states import HeldTenant, StateChange

_INSTEAD: dict[tuple[TenantAct, TenantState], str] = {
    ("suspend", "deleted"): "It is deleted already; there is nothing to suspend.",
    ("resume", "deleted"): "It is deleted: restore it first.",
    ("delete", "active"): "It is active: suspend it first, or ask with suspend=true.",
    ("restore", "active"): "It was not deleted.",
}


class TenantStates:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        audit_log: AuditLog = USUAL_LOG,
        *,
        kept: timedelta,
    ) -> None:
        self._database = database
        self._audit_log = audit_log
        self._directory = directory
        self.kept = kept  # how long a deleted one can be brought back

    async def suspend(
        self,
        name: str,
        reason: str | None,
        *,
        cancels_running: bool | None,
        replace_reason: bool = False,
        actor: Actor = PLATFORM,
    ) -> Tenant:
        """Its keys open nothing and its jobs do not start. Again: what is None stays as it is, and
        so does a reason, unless another is to replace it."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            held = await self._held(connection, "suspend", name)
            is_again = held.state == "suspended"
            wanted = StateChange(
                "suspended",
                _reason(held.reason if is_again else "", reason, may_replace=replace_reason),
                cancels_running
                if cancels_running is not None
                else is_again and held.cancels_running,
            )
            await store.set_state(connection, held, wanted)
            await self._add(connection, actor, "suspend_tenant", held, wanted._asdict())
        return await self._told(held)

    async def resume(self, name: str, actor: Actor = PLATFORM) -> Tenant:
        """All is as it was."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            held = await self._held(connection, "resume", name)
            if held.state != "active":
                await store.set_state(connection, held, StateChange("active"))
                await self._add(connection, actor, "resume_tenant", held, {"state": "active"})
        return await self._told(held)

    async def delete(self, name: str, *, may_suspend: bool, actor: Actor = PLATFORM) -> Tenant:
        """Its keys are gone at once, what waits soon; its name stays taken for a while."""
        wanted = StateChange("deleted", "It was deleted.", cancels_running=True)
        async with told_if_away, self._database.people() as connection, connection.transaction():
            held = await self._held(connection, "delete", name, may_suspend=may_suspend)
            if held.state != "deleted":
                await store.set_state(connection, held, wanted)
                keys = await store.shut_out(connection, held.id)
                after = {"state": "deleted", "keys_revoked": keys, "kept_days": self.kept.days}
                await self._add(connection, actor, "delete_tenant", held, after)
        return await self._told(held)

    async def restore(self, name: str, actor: Actor = PLATFORM) -> Tenant:
        """It is suspended again. What was cancelled, removed or revoked stays so."""
        async with told_if_away, self._database.people() as connection, connection.transaction():
            held = await self._held(connection, "restore", name)
            if held.state == "deleted":
                if has_lapsed(held.state_since, held.now, self.kept):
                    raise Conflict(
                        f"It was deleted more than {self.kept.days} days ago and is past restoring."
                    )
                change = StateChange("suspended", "It was deleted, and restored.")
                await store.set_state(connection, held, change)
                await self._add(connection, actor, "restore_tenant", held, {"state": "suspended"})
        return await self._told(held)

    async def _add(
        self, connection: Connection, actor: Actor, action: str, held: HeldTenant, after: Fields
    ) -> None:
        """The line of an act, in the transaction of the act."""
        before: dict[str, object] = {"state": held.state}
        if held.state == "suspended":
            before |= {"reason": held.reason, "cancels_running": held.cancels_running}
        act = Act(action, held.name, held.id, before, after)
        await self._audit_log.add(connection, actor, act)

    async def _held(
        self, connection: Connection, act: TenantAct, name: str, *, may_suspend: bool = False
    ) -> HeldTenant:
        """The tenant until the transaction ends, if its state allows that."""
        held = await store.hold_tenant(connection, name)
        if held is None:
            raise NotFound(f"There is no tenant {name[:64]!r}.")
        if state_after(act, held.state, may_suspend=may_suspend) is None:
            raise Conflict(_INSTEAD[act, held.state])
        return held

    async def _told(self, held: HeldTenant) -> Tenant:
        await self._directory.refresh()
        return self._directory.tenants[held.id]


def _reason(before: str, wanted: str | None, *, may_replace: bool) -> str:
    """The first that was given stays, unless another is to replace it."""
    if wanted is None or (before and not may_replace):
        return before
    return wanted
