"""What is refused of tenants: keys of one that stands still, unknown tiers, a part as a tenant."""

from __future__ import annotations

from fairway.core.errors import Forbidden, InvalidRequest, NotFound
from fairway.core.ownership.tenant_parts import whole_name
from fairway.core.tenant import TENANT_SUSPENDED, Tenant, suspended_sentence, tenant_moving
from fairway.store.connections.database import Connection
from fairway.store.registry import tiers


def refuse_still(tenant: Tenant, scope: str) -> None:
    """`scope` is that of the key: a worker's still says how its runs end while the tenant moves."""
    if tenant.state == "suspended":
        raise Forbidden(suspended_sentence(tenant.reason), code=TENANT_SUSPENDED)
    if tenant.moving_to is not None and scope == "tenant":
        raise tenant_moving()


async def refuse_unknown_tier(connection: Connection, name: str) -> None:
    names = [tier.name for tier in await tiers.all_tiers(connection)]
    if name not in names:
        raise InvalidRequest(
            f"There is no tier {name[:64]!r}; there are {', '.join(names)}.", field="/tier"
        )


def part_named(name: str, field: str) -> NotFound:
    """Acted on alone, a part would have other terms than the rest, and accept keys of theirs."""
    said = f"{name!r} is a shard of the tenant {whole_name(name)!r}: name that."
    return NotFound(said, field=field)
