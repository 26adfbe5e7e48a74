"""What operators and machines send and get: keys, workers, health; tenants: `tenancy.py`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Struct

from fairway.wire.doc import doc


class NewKey(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key for a tenant's programs, or for workers (of one tenant, or of all)."""

    scope: Annotated[Literal["tenant", "worker"], doc("Who will use it.")] = "tenant"
    tenant: Annotated[
        str | None, doc("The tenant's name. A worker's key without one serves all tenants.")
    ] = None


class KeyAdded(Struct, kw_only=True):
    """The new key. Its text is shown here once and never again."""

    id: Annotated[str, doc("The public part, for revoking it.")]
    scope: Annotated[str, doc("Who may use it.")]
    tenant: Annotated[str | None, doc("The tenant it belongs to.")]
    api_key: Annotated[str, doc("The key, shown once.")]


class KeyView(Struct, kw_only=True):
    """A valid key; its secret is known to its holder only."""

    id: Annotated[str, doc("The public part, for revoking it.")]
    scope: Annotated[str, doc("Who may use it.")]
    tenant: Annotated[str | None, doc("The tenant it belongs to.")]
    created_at: Annotated[datetime, doc("When it was made.")]
    expires_at: Annotated[datetime | None, doc("When it stops working, if ever.")]


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
    limits: Annotated[
        dict[str, str],
        doc("Limit of a job in a process of its own → what holds it on that machine."),
    ]


class WorkerList(Struct, kw_only=True):
    """The workers that the platform hears, by name."""

    workers: Annotated[list[WorkerView], doc("By name.")]


class Health(Struct, kw_only=True, omit_defaults=True):
    """Whether the server is well, and which of its checks hold."""

    status: Annotated[str, doc("ok, or not ready.")]
    checks: Annotated[dict[str, bool], doc("Each check, and whether it holds.")] = {}
