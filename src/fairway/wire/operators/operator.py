"""What operators and machines send and get: keys, workers, health; tenants: `tenancy.py`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from fairway.wire.doc import doc
from fairway.wire.messages import JobType, PoolName
from fairway.wire.operators.tenancy import TenantName

KEY_NAMES_MAX = 100
OVERLAP_SECONDS_MAX = 30 * 86_400

KeyName = Annotated[str, Meta(max_length=100, examples=["ci"])]
KeyPermission = Literal["read", "submit", "operate", "admin"]

KEY_NAME = doc("What it is for, in a few words for people.")
PERMISSIONS = doc(
    "What it may do: a tenant's key read, submit and operate, an operator's read, operate and"
    ' admin. Null: all of them. A key that only reads is `["read"]`.'
)
KEY_POOLS = doc("A worker's key: it serves these pools only; null: any.")
KEY_TENANTS = doc("A worker's key of no tenant: it runs jobs of these tenants only; null: of any.")
KEY_TYPES = doc("A worker's key: it runs jobs of these types only; null: any.")


class NewKey(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key for a tenant's programs, or for workers (of one tenant, or of all)."""

    scope: Annotated[Literal["tenant", "worker", "operator"], doc("Who will use it.")] = "tenant"
    tenant: Annotated[
        str | None, doc("The tenant's name. A worker's key without one serves all tenants.")
    ] = None
    name: Annotated[KeyName, KEY_NAME] = ""
    permissions: Annotated[
        Annotated[list[KeyPermission], Meta(min_length=1, max_length=8)] | None, PERMISSIONS
    ] = None
    pools: Annotated[
        Annotated[list[PoolName], Meta(min_length=1, max_length=KEY_NAMES_MAX)] | None, KEY_POOLS
    ] = None
    types: Annotated[
        Annotated[list[JobType], Meta(min_length=1, max_length=KEY_NAMES_MAX)] | None, KEY_TYPES
    ] = None
    tenants: Annotated[
        Annotated[list[TenantName], Meta(min_length=1, max_length=KEY_NAMES_MAX)] | None,
        KEY_TENANTS,
    ] = None
    expires_at: Annotated[
        Annotated[datetime, Meta(tz=True)] | None, doc("When it stops working; null: never.")
    ] = None


class KeyRotation(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new key in place of one."""

    overlap_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=OVERLAP_SECONDS_MAX)],
        doc("How long the old key goes on working beside the new one."),
    ] = 86_400


class KeyAdded(Struct, kw_only=True):
    """The new key. Its text is shown here once and never again."""

    id: Annotated[str, doc("The public part, for revoking it.")]
    scope: Annotated[str, doc("Who may use it.")]
    tenant: Annotated[str | None, doc("The tenant it belongs to.")]
    name: Annotated[str, KEY_NAME] = ""
    api_key: Annotated[str, doc("The key, shown once.")]


class KeyView(Struct, kw_only=True):
    """A valid key; its secret is known to its holder only."""

    id: Annotated[str, doc("The public part, for revoking it.")]
    scope: Annotated[str, doc("Who may use it.")]
    tenant: Annotated[str | None, doc("The tenant it belongs to.")]
    name: Annotated[str, KEY_NAME]
    permissions: Annotated[list[str], doc("What it may do.")]
    pools: Annotated[list[str] | None, KEY_POOLS]
    types: Annotated[list[str] | None, KEY_TYPES]
    tenants: Annotated[list[str] | None, KEY_TENANTS]
    created_at: Annotated[datetime, doc("When it was made.")]
    expires_at: Annotated[datetime | None, doc("When it stops working, if ever.")]
    last_used_at: Annotated[
        datetime | None, doc("When it last opened something, to a quarter of an hour.")
    ]


class KeyList(Struct, kw_only=True):
    """A page of valid keys by their public part; `next_cursor` is null on the last page."""

    keys: Annotated[list[KeyView], doc("By public part.")]
    next_cursor: Annotated[
        str | None, doc("Ask for the next page with it; null on the last page.")
    ] = None


class WorkerView(Struct, kw_only=True):
    """One life of one worker."""

    name: Annotated[str, doc("Its name, for people; several may share one.")]
    life: Annotated[
        str, doc("Which of its lives this is: drain it by this; not its session, which is secret.")
    ]
    tenant: Annotated[str | None, doc("Set when it runs one tenant's jobs only.")]
    build: Annotated[str, doc("Which build of the code it is.")]
    slots: Annotated[dict[str, int], doc("Pool → how many jobs it runs at once there.")]
    running: Annotated[
        dict[str, int], doc("Pool → how many it runs now; pools without any are left out.")
    ]
    draining: Annotated[bool, doc("Whether it takes no more jobs, or was asked to take none.")]
    silent_seconds: Annotated[float, doc("Since it was last heard of.")]
    silent: Annotated[bool, doc("Whether that is longer than its pools ask of it: it may be dead.")]
    limits: Annotated[
        dict[str, str],
        doc("Limit of a job in a process of its own → what holds it on that machine."),
    ]
    closed_seconds: Annotated[
        float | None,
        doc("For how long it has been given no jobs, to be spared by the autoscaler; else null."),
    ] = None
    closed_because: Annotated[str | None, doc("Why that is so, as a sentence.")] = None


class WorkerList(Struct, kw_only=True):
    """The workers that the platform hears, by name."""

    workers: Annotated[list[WorkerView], doc("By name.")]


class Health(Struct, kw_only=True, omit_defaults=True):
    """Whether the server is well, and which of its checks hold."""

    status: Annotated[str, doc("ok, or not ready.")]
    checks: Annotated[dict[str, bool], doc("Each check, and whether it holds.")] = {}
