"""Jobs whose payloads are too large for their row: let in first, then stored, then submitted.

Uploads are looked at here as payloads in a request are; what is refused has left nothing behind.
"""

from __future__ import annotations

import asyncio
from functools import partial

from fairway.api.payload_schema import PayloadSchemas
from fairway.api.weight import is_light
from fairway.core.errors import InvalidRequest
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.submission_group import NewJob, Verdict
from fairway.wire.payload import check_carefully, check_payload, is_plain


async def submit_large(
    platform: Platform, tenant: Tenant, jobs: list[NewJob], schemas: PayloadSchemas
) -> list[Verdict]:
    """As `submit`, for jobs of which some are too large for their row.

    They are let in first: nothing is written for a job that is refused. Uploads are looked into
    one at a time, as bodies are: a batch of them takes one place in the lane, not all of them.
    """
    turn = asyncio.Lock()

    def examine(new: NewJob, payload: bytes) -> None:
        if check_upload(payload):
            schemas.check(new.type, payload)

    async def look(new: NewJob, payload: bytes) -> None:
        try:
            async with turn:
                await platform.heavy.run(tenant.id, partial(examine, new, payload), len(payload))
        except InvalidRequest:
            platform.admission.charge(tenant, len(payload))
            raise

    platform.submissions.admit(tenant, len(jobs))
    inline_max = platform.settings.inline_bytes_max
    found = await platform.vault.stand_aside(tenant.id, jobs, inline_max, look)
    kept = [one for one in found if isinstance(one, NewJob)]
    verdicts = await platform.submissions.submit(tenant, kept, is_admitted=True) if kept else []
    await platform.vault.settle(kept, verdicts)
    rest = iter(verdicts)
    return [next(rest) if isinstance(one, NewJob) else one for one in found]


def check_upload(payload: bytes) -> bool:
    """As a payload in a request is looked at, when its job comes.

    False: it has so many values that it is left to its worker, as one of many bytes is.
    """
    try:
        check_payload(payload, len(payload), "/payload_upload")
        if not is_light(payload):
            return False
        if not is_plain(payload):
            check_carefully(payload)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"What was uploaded cannot be a payload: {error.message}",
            code=error.code,
            field="/payload_upload",
        ) from None
    return True
