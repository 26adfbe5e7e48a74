"""The door in the database: jobs that tenants committed with their own data, read as any request.

Not an endpoint, but what comes this way is looked at as what comes to `POST /v1/jobs`; the moving
is done behind it (`services/submit/outbox.py`).
"""

from __future__ import annotations

from functools import partial

from fairway.api.jobs.submit import decode, look_at, new_job, refuse_unique
from fairway.api.payloads.body_cost import CAREFUL_BYTES_MAX, weigh
from fairway.api.payloads.payload_schema import PayloadSchemas
from fairway.core.errors import InvalidRequest
from fairway.core.tenant import Tenant
from fairway.core.unique import NOT_IN_A_TRANSACTION
from fairway.runtime.loops import Loop
from fairway.services.platform import Platform
from fairway.services.submit.submission_group import NewJob
from fairway.wire.payload import is_plain


class OutboxDoor:
    """Open from birth until it is closed."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._registry = platform.registry
        self._schemas = PayloadSchemas(platform.registry.schemas)
        settings = platform.settings
        self._payload_max = min(settings.inline_bytes_max, settings.payload_bytes_max)
        step = partial(platform.outbox.run_once, self.read)
        self._moving = Loop(
            "outbox", step, platform.clock, platform.outbox.news, common=platform.store_watch
        )
        self._moving.start()

    async def close(self) -> None:
        await self._moving.stop()

    async def read(self, tenant: Tenant, request: bytes) -> NewJob:
        """The job that a request means; InvalidRequest when it could not be submitted either."""
        if len(request) <= CAREFUL_BYTES_MAX or is_plain(request):
            return self._understand(request)
        look = partial(self._understand, request)
        return await self._platform.heavy.run(tenant.id, look, len(request))

    def _understand(self, request: bytes) -> NewJob:
        weigh(request)
        new = new_job(
            decode(request), self._platform.settings.payload_bytes_max, self._platform.registry
        )
        refuse_unique(new, NOT_IN_A_TRANSACTION)
        if new.upload is not None:
            raise InvalidRequest(
                "A transaction hands in jobs with their payload, not with an upload.",
                field="/payload_upload",
            )
        if len(new.payload) > self._payload_max:
            raise InvalidRequest(
                f"The payload has {len(new.payload)} bytes; a transaction hands in at most"
                f" {self._payload_max}. Keep what is large elsewhere, and hand in where it is.",
                code="PAYLOAD_TOO_LARGE",
                field="/payload",
            )
        look_at(request)
        self._schemas.check(new.type, new.payload)
        return new
