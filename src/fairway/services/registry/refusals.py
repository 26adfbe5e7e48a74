"""What the keys of a tenant hear that stands still: by an operator's word, or while it moves.

Nothing is looked up here.
"""

from __future__ import annotations

from fairway.core.errors import Forbidden
from fairway.core.tenant import TENANT_SUSPENDED, Tenant, suspended_sentence, tenant_moving


def refuse_still(tenant: Tenant, scope: str) -> None:
    """`scope` is that of the key: a worker's still says how its runs end while the tenant moves."""
    if tenant.state == "suspended":
        raise Forbidden(suspended_sentence(tenant.reason), code=TENANT_SUSPENDED)
    if tenant.moving_to is not None and scope == "tenant":
        raise tenant_moving()
