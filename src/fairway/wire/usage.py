"""What a tenant's jobs used."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from fairway.wire.doc import doc


class PoolUsage(Struct, kw_only=True):
    """What jobs of one pool used."""

    pool: Annotated[str, doc("The pool.")]
    jobs: Annotated[int, doc("Jobs that were submitted in that time.")]
    billable_slot_seconds: Annotated[float, doc("Slot-time of their runs that is billed.")]
    unbilled_slot_seconds: Annotated[float, doc("Of runs that the platform cut short.")]


class Usage(Struct, kw_only=True):
    """Slot-time of the jobs that were submitted in some time, by pool."""

    pools: Annotated[list[PoolUsage], doc("By pool; pools without jobs are left out.")]
