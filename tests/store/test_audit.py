"""Lines of the audit in the store: a tenant that writes very many loses its oldest, others none."""

from __future__ import annotations

from fairway.core.audit import Act, Actor, AuditFilter, line_of
from fairway.core.ids import TenantId
from fairway.store.connections.database import Connection
from fairway.store.registry.audit import add_audit, audit_of, forget_floods, list_audit

LOUD, QUIET = TenantId(1), TenantId(2)


async def test_a_flood_pushes_out_its_own_old_lines_only(connection: Connection) -> None:
    await add_audit(connection, line_of(Actor("op", kind="operator"), Act("by staff", "a", LOUD)))
    for tenant, count in ((QUIET, 5), (LOUD, 40)):
        for number in range(count):
            line = line_of(Actor("k", kind="tenant"), Act("pause", str(number), tenant))
            await add_audit(connection, line)
    removed = await forget_floods(connection, among=100, kept=20, limit=15)
    assert removed == 15, "so many a round"
    assert await forget_floods(connection, among=100, kept=20, limit=15) == 5
    assert await forget_floods(connection, among=100, kept=20, limit=15) == 0
    everything = AuditFilter(1 << 62, 1000)
    loud = await audit_of(connection, LOUD, everything)
    assert [one.subject for one in loud] == [*(str(n) for n in range(39, 19, -1)), "a"]
    assert len(await audit_of(connection, QUIET, everything)) == 5
    assert len(await list_audit(connection, everything)) == 26
