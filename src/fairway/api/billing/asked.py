"""Whose usage is asked about, and of which hours: what these endpoints have in common."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from starlette.datastructures import QueryParams

from fairway.api.endpoint import query
from fairway.api.operators.tenants import tenant_named
from fairway.core.billing.periods import begin_of, is_whole_hour
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal

TENANT = query("tenant", "Whose, for operators: the tenant's name.", "acme")
_HOURS = {"type": "string", "format": "date-time"}
FROM = query(
    "from",
    "The first hour, with its zone; the beginning of this month if left out.",
    "2026-01-01T00:00:00Z",
    schema=_HOURS,
)
TO = query(
    "to",
    "The hour after the last, with its zone; the end of the present hour if left out.",
    "2026-02-01T00:00:00Z",
    schema=_HOURS,
)


class Whose(NamedTuple):
    tenant: Tenant
    asker: TenantId | None  # whose turn the question takes; None: an operator's


async def whose(platform: Platform, principal: Principal, given: str | None) -> Whose:
    """A tenant's key means that tenant; an operator names one."""
    if principal.tenant is not None:
        tenant = platform.directory.tenants[principal.tenant.id]
        if given not in (None, tenant.name):
            raise NotFound(f"There is no tenant {given[:64]!r} for your key.", field="tenant")
        return Whose(tenant, tenant.id)
    if not given:
        raise InvalidRequest("Say whose, as in tenant=acme.", field="tenant")
    return Whose(await tenant_named(platform, given, "tenant"), None)


def hours(given: QueryParams, now: datetime) -> tuple[datetime, datetime]:
    since = _hour(given.get("from"), "from") or begin_of(now, "month")
    before = _hour(given.get("to"), "to") or begin_of(now, "hour") + timedelta(hours=1)
    if since >= before:
        raise InvalidRequest("from lies before to.", field="from")
    return since, before


def _hour(text: str | None, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
        if found.tzinfo is not None and 2000 <= found.year < 3000 and is_whole_hour(found):
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(
        f"{field} is a whole hour with its zone, such as 2026-01-31T12:00:00Z: usage is kept by the"
        " hour.",
        field=field,
    )
