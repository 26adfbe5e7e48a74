"""What workers asked for when runs of their job types fail.

A shared worker speaks for its types, whoever's jobs they are; a tenant's own worker only for the
jobs of its tenant, where it goes before what shared ones said. What is asked outlives the session:
a job is judged after its worker died, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.core.ids import TenantId, TypeId

Asked = dict[str, Any]  # limits by their names in a RetryPolicy

OWN_MAX = 100_000  # of all tenants together; then the one that said hello longest ago goes
_NOTHING: Asked = {}


class Policies:
    def __init__(self) -> None:
        self._shared: dict[TypeId, Asked] = {}
        self._own: dict[TenantId, dict[TypeId, Asked]] = {}  # by tenant; who spoke last stands last
        self._own_count = 0

    def asked(self, tenant: TenantId | None, by_type: Mapping[TypeId, Asked]) -> None:
        """A worker of this tenant, or a shared one, said hello."""
        if tenant is None:
            self._shared.update(by_type)
            return
        own = self._own.pop(tenant, {})
        self._own_count -= len(own)
        own.update(by_type)
        if own:
            self._own[tenant] = own
            self._own_count += len(own)
        while self._own_count > OWN_MAX and len(self._own) > 1:
            self._own_count -= len(self._own.pop(next(iter(self._own))))

    def of(self, tenant: TenantId, job_type: TypeId) -> Asked:
        own = self._own.get(tenant)
        if own is not None and job_type in own:
            return own[job_type]
        return self._shared.get(job_type, _NOTHING)
