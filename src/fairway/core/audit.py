"""One line of the audit: who did what to what, from where, and what it was before and after.

Of before and after only what differs is kept, without secrets, and within so many bytes: whoever
sends a huge value makes its own line no longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from fairway.core.ids import TenantId
from fairway.core.redaction import USUAL, Redaction

ActorKind: TypeAlias = Literal["operator", "tenant", "platform", "command"]

SUBJECT_MAX = 200  # characters
DETAIL_MAX = 1_000
NAME_MAX = 100
VALUE_BYTES_MAX = 500  # of one field
SIDE_BYTES_MAX = 4_000  # of before, and of after
FIELD_MAX = 64
MORE = "…"  # the field that says how many were left out

Fields: TypeAlias = Mapping[str, Any]
NOTHING: Fields = MappingProxyType({})


class Actor(NamedTuple):
    """Who acts, and from where."""

    id: str  # the public part of a key; or a word, where there is none
    name: str = ""  # of the key
    kind: ActorKind = "platform"
    address: str = ""
    request_id: str = ""


PLATFORM = Actor("platform")  # of what nobody asked for


class Act(NamedTuple):
    """What was done. Before and after may have more in common than they differ in."""

    action: str
    subject: str
    tenant: TenantId | None = None  # whose things were changed; None: the house's
    before: Fields = NOTHING
    after: Fields = NOTHING
    detail: str = ""  # a sentence, where fields do not say it


class AuditLine(NamedTuple):
    """As it is kept; before and after are JSON objects."""

    actor: str
    actor_name: str
    actor_kind: str
    address: str
    request_id: str
    tenant: TenantId | None
    action: str
    subject: str
    detail: str
    before: str
    after: str


class AuditEntry(NamedTuple):
    """A line as it is read again."""

    id: int
    at: datetime
    actor: str
    actor_name: str
    actor_kind: str
    address: str
    request_id: str
    tenant: TenantId | None
    action: str
    subject: str
    detail: str
    before: str  # JSON objects
    after: str


class AuditFilter(NamedTuple):
    """Which lines, newest first; what is None does not narrow."""

    below: int  # ids under this one
    limit: int
    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    since: datetime | None = None


def line_of(actor: Actor, act: Act, redaction: Redaction = USUAL) -> AuditLine:
    before, after = _differing(act.before, act.after), _differing(act.after, act.before)
    return AuditLine(
        actor=plain(actor.id, NAME_MAX),
        actor_name=plain(actor.name, NAME_MAX),
        actor_kind=actor.kind,
        address=plain(actor.address, NAME_MAX),
        request_id=plain(actor.request_id, NAME_MAX),
        tenant=act.tenant,
        action=act.action,
        subject=plain(act.subject, SUBJECT_MAX),
        detail=plain(redaction.text(act.detail), DETAIL_MAX),
        before=_bounded(before, redaction),
        after=_bounded(after, redaction),
    )


def plain(text: str, length_max: int) -> str:
    """What the store takes, whatever came: no NUL, no half of a letter, not too long."""
    short = text if len(text) <= length_max else text[: length_max - 1] + MORE
    return short.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _differing(these: Fields, others: Fields) -> dict[str, Any]:
    absent = object()
    return {name: value for name, value in these.items() if others.get(name, absent) != value}


def _bounded(fields: Fields, redaction: Redaction) -> str:
    """A JSON object of all that fits; how many did not."""
    kept: dict[str, Any] = {}
    size = 0
    for name, value in redaction.of(dict(fields)).items():
        short_name, short = plain(str(name), FIELD_MAX), _short(value)
        size += len(_text(short_name)) + len(_text(short)) + 4  # of the signs between them
        if size > SIDE_BYTES_MAX:
            return _text(kept | {MORE: f"{len(fields) - len(kept)} more"})
        kept[short_name] = short
    return _text(kept)


def _short(value: Any) -> Any:
    text = _text(value)
    if len(text) <= VALUE_BYTES_MAX:
        return value
    return f"{text[: VALUE_BYTES_MAX // 2]}{MORE} ({len(text)} bytes)"


def _text(value: Any) -> str:
    """ASCII, so that characters are bytes."""
    return json.dumps(value, default=str, separators=(",", ":"))
