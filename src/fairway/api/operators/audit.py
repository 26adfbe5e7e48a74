"""Who changed what: for operators all of it, for a tenant what was done to its own things."""

from __future__ import annotations

from datetime import datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import json_reply
from fairway.core.audit import SUBJECT_MAX, AuditEntry, AuditFilter
from fairway.core.errors import InvalidRequest
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.operators.audit import AuditList, AuditView

_FILTERS = (
    query(
        "actor", "Only what this one did: a key's public part or its name, or platform.", "deploy"
    ),
    query("action", "Only this.", "change_tenant"),
    query("subject", "Only to this.", "acme"),
    query(
        "since",
        "Done at or after this moment, with its zone.",
        "2026-01-31T00:00:00Z",
        schema={"type": "string", "format": "date-time"},
    ),
    *filters.named("limit"),
    query("cursor", "`next_cursor` of the page before. Opaque.", "4711"),
)


@Endpoint(
    "GET /v1/audit",
    keys=("operator", "tenant"),
    parameters=_FILTERS,
    reply=Reply(
        200,
        "A page of acts.",
        AuditList,
        {
            "entries": [
                {
                    "id": 17,
                    "at": "2026-01-31T12:00:00Z",
                    "actor": "b81f02aa",
                    "actor_name": "deploy",
                    "actor_kind": "operator",
                    "address": "192.0.2.7",
                    "request_id": "9f86d081884c7d65",
                    "tenant": "acme",
                    "action": "change_tenant",
                    "subject": "acme",
                    "detail": "",
                    "before": {"weight": 100},
                    "after": {"weight": 200},
                }
            ],
            "next_cursor": None,
        },
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", *parts.QUICK),
)
async def list_audit(request: Request, platform: Platform, principal: Principal) -> Response:
    """Who changed what

    Newest first: what people changed, by key, and what the platform decided by itself, such as
    moving a job type to another pool. `before` and `after` have the fields that differ, without
    secrets. With a tenant's key it is what was done to that tenant's things; which of the
    platform's people did it, and from where, is not said.
    """
    given = request.query_params
    filters.check_names(given, _FILTERS)
    limit = filters.limit(given.get("limit"))
    wanted = AuditFilter(
        below=filters.number_below(given.get("cursor")),
        limit=limit + 1,
        since=_moment(given.get("since")),
        **{name: _word(given.get(name), name) for name in ("actor", "action", "subject")},
    )
    asker = None if principal.tenant is None else principal.tenant.id
    found = await platform.registry.audit(asker, wanted)
    entries = [_view(platform, entry) for entry in found[:limit]]
    next_cursor = str(entries[-1].id) if len(found) > limit else None
    return json_reply(AuditList(entries=entries, next_cursor=next_cursor))


def _view(platform: Platform, entry: AuditEntry) -> AuditView:
    usual = "platform" if entry.actor == "platform" else "operator"  # before kinds were kept
    told = entry._asdict() | {
        "actor_kind": entry.actor_kind or usual,
        "tenant": None if entry.tenant is None else platform.directory.name_of(entry.tenant),
        "before": msgspec.Raw(entry.before.encode()),
        "after": msgspec.Raw(entry.after.encode()),
    }
    return AuditView(**told)


def _word(text: str | None, field: str) -> str | None:
    """Empty is a variable that was not set, in somebody's shell: it must not mean all of them."""
    if text is None:
        return None
    if not text or not text.isprintable() or len(text) > SUBJECT_MAX:
        raise InvalidRequest(f"{field} is a word of up to {SUBJECT_MAX} characters.", field=field)
    return text


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
        if found.tzinfo is None or not 1970 <= found.year < 9999:  # the store's reach is not ours
            raise ValueError
    except ValueError:
        raise InvalidRequest(
            "since is a time with its zone, such as 2026-01-31T12:00:00Z.", field="since"
        ) from None
    return found
