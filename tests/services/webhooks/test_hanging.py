"""Receivers that never answer are in nobody's way."""

from __future__ import annotations

from tests.services.platform_room import until
from tests.services.webhooks.receiver import HANG, receiving
from tests.services.webhooks.steps import happen, hook

from fairway.core.tenant import Tenant
from fairway.services.platform import Platform

TENANTS, EACH = 300, 3

OTHERS = """
INSERT INTO tenants (id, name) SELECT 1000 + n, 'other-' || n FROM generate_series(1, $1) AS n
"""
#: Webhooks of other tenants, each with deliveries that are due.
MANY = """
INSERT INTO webhooks (shard, tenant, id, url, kinds, description, enabled, secret, position, due_at)
SELECT 0, 1000 + n, gen_random_uuid(), $1, '{}', '', true, 'whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQ=', 0,
       now() - interval '1 minute'
FROM generate_series(1, $2) AS n
"""
THEIRS = """
INSERT INTO webhook_deliveries (shard, tenant, webhook, number, kind, body, state, next_at)
SELECT 0, tenant, id, n, 'job.dead', '{}', 0, now() - interval '1 minute'
FROM webhooks, generate_series(1, $1) AS n WHERE tenant >= 1000
"""


async def test_hundreds_that_hang_delay_nobody(platform: Platform, tenant: Tenant) -> None:
    """A call of theirs would last for a minute; nobody else waits for as long as that."""
    async with receiving(lambda received: HANG) as hanging, receiving() as good:
        own = await hook(platform, tenant, hanging.url)  # the same tenant has one, too
        await hook(platform, tenant, good.url)
        async with platform.database.background() as connection:
            await connection.execute(OTHERS, TENANTS)
            await connection.execute(MANY, hanging.url, TENANTS)
            await connection.execute(THEIRS, EACH)
        platform.loops["webhook calls"].wake()
        await until(lambda: len(hanging.received) > TENANTS / 2)
        await happen(platform, tenant.id, 5)
        await until(lambda: len(good.received) == 5)
        await until(lambda: len(hanging.received) == TENANTS + 1)
        ids = [one.id for one in hanging.received]
        assert len(ids) == len(set(ids))  # one call each, and no second one beside it
        assert sum(own.key.id.replace("-", "") in one for one in ids) == 1
        await happen(platform, tenant.id, 5)
        await until(lambda: len(good.received) == 10)
