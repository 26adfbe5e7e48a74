"""The audit, as operators and tenants read it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Raw, Struct

from fairway.wire.doc import doc


class AuditView(Struct, kw_only=True):
    """One act: who did it, from where, to what, and what it was before."""

    id: Annotated[int, doc("Grows with every act.")]
    at: Annotated[datetime, doc("When.")]
    actor: Annotated[
        str,
        doc("The public part of the key that did it; or platform, or command (`fairway init`)."),
    ]
    actor_name: Annotated[str, doc("The name of that key.")]
    actor_kind: Annotated[str, doc("operator, tenant, platform or command.")]
    address: Annotated[str, doc("Where the request came from.")]
    request_id: Annotated[str, doc("As in `X-Request-Id` of its reply.")]
    tenant: Annotated[str | None, doc("Whose things were changed; null: the platform's.")]
    action: Annotated[str, doc("What was done.")]
    subject: Annotated[str, doc("To which tenant, key, pool, job type, schedule and so on.")]
    detail: Annotated[str, doc("A sentence, where fields do not say it.")]
    before: Annotated[Raw, doc("The fields that differ, as they were.", dict[str, Any])]
    after: Annotated[Raw, doc("The same, as they are from then on.", dict[str, Any])]


class AuditList(Struct, kw_only=True):
    """Acts, newest first; `next_cursor` is null on the last page."""

    entries: Annotated[list[AuditView], doc("Newest first.")]
    next_cursor: Annotated[
        str | None, doc("Ask for the next page with it; null on the last page.")
    ] = None
