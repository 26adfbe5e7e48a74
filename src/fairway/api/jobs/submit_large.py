"""Jobs whose payloads are too large for their row: let in first, then stored, then submitted.

Uploads are looked at here as payloads in a request are; what is refused has left nothing behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fairway.api.passing import Passing
from fairway.api.payloads.body_cost import is_light
from fairway.api.payloads.payload_schema import PayloadSchemas
from fairway.api.payloads.text_checks import look_through
from fairway.core.errors import Conflict, Forbidden, InvalidRequest
from fairway.core.object_storage.upload_facts import NO_FIT
from fairway.core.tenant import Tenant
from fairway.services.object_storage.upload_checks import LOOK_BYTES_MAX, Look
from fairway.services.platform import Platform
from fairway.services.submit.submission_group import NewJob, Verdict
from fairway.wire.payload import check_carefully, check_payload, is_plain


async def submit_large(
    platform: Platform,
    passing: Passing,
    asked_by: tuple[str, Tenant],
    jobs: list[NewJob],
    schemas: PayloadSchemas,
) -> list[Verdict]:
    """As `submit`, for jobs of which some are too large for their row.

    They are let in first: nothing is written for a job that is refused. Few uploads of a tenant are
    looked at at a time: a batch of them takes as many places in the lane, not all of them.
    """
    key_id, tenant = asked_by

    def look_for(new: NewJob) -> Look:
        looking = UploadLook(platform, tenant, new, schemas)
        return Look(
            looking.whole,
            looking.through,
            partial(platform.admission.charge, tenant),
            schemas.digest(new.type),
        )

    if home := passing.home_elsewhere(tenant):
        raise Conflict(
            f"A payload that goes to object storage is taken in the tenant's home region, {home}:"
            " send it there.",
            code="HOME_ELSEWHERE",
        )
    await passing.admit(tenant, len(jobs))
    inline_max = platform.settings.inline_bytes_max
    found = await platform.large_data.payloads.offload_large_payloads(
        tenant.id, jobs, inline_max, look_for
    )
    kept = [one for one in found if isinstance(one, NewJob)]
    try:
        platform.revocation.check(key_id)  # a look may take minutes
    except Forbidden:
        await platform.large_data.payloads.drop(kept)
        raise
    verdicts = await passing.submit(tenant, kept, is_admitted=True) if kept else []
    await platform.large_data.payloads.settle(kept, verdicts)
    rest = iter(verdicts)
    return [next(rest) if isinstance(one, NewJob) else one for one in found]


class UploadLook:
    """Looks at what was uploaded for one job, as at a payload in a request.

    What is looked at in one go is held against the schema of its type, too. Of what is larger, or
    has more values, that takes all of it in memory: its worker finds out when it reads it.
    """

    def __init__(
        self, platform: Platform, tenant: Tenant, new: NewJob, schemas: PayloadSchemas
    ) -> None:
        self._platform = platform
        self._tenant = tenant
        self._new = new
        self._schemas = schemas

    async def whole(self, payload: bytes) -> None:
        async with self._charged(len(payload)):
            look = partial(self._examine, payload)
            if not await self._platform.heavy.run(self._tenant.id, look, len(payload)):
                await look_through(self._platform.heavy, self._tenant.id, _one(payload))

    async def through(self, pieces: AsyncIterator[bytes]) -> None:
        async with self._charged(LOOK_BYTES_MAX):
            await look_through(self._platform.heavy, self._tenant.id, pieces)

    @asynccontextmanager
    async def _charged(self, size_bytes: int) -> AsyncIterator[None]:
        """Who uploads what cannot be a payload pays for the look."""
        try:
            yield
        except InvalidRequest as error:
            self._platform.admission.charge(self._tenant, size_bytes)
            if error.code == NO_FIT:  # it names the place
                raise
            raise InvalidRequest(
                f"What was uploaded cannot be a payload: {error.message}",
                code=error.code,
                field="/payload_upload",
            ) from None

    def _examine(self, payload: bytes) -> bool:
        """False: it has so many values that it must be looked through piece by piece."""
        check_payload(payload, len(payload), "/payload_upload")
        if not is_light(payload):
            return False
        if not is_plain(payload):
            check_carefully(payload)
        self._schemas.check(self._new.type, payload)
        return True


async def _one(payload: bytes) -> AsyncIterator[bytes]:
    yield payload
