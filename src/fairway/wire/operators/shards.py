"""Shards on the wire: who owns each, how many there are, and who moves between them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from fairway.core.ownership.tenant_move import WAIT_SECONDS, WAIT_SECONDS_MAX
from fairway.wire.doc import doc

ShardCount = Annotated[int, Meta(ge=1, le=4096)]
ShardNumber = Annotated[int, Meta(ge=0, le=4095)]
WaitSeconds = Annotated[int, Meta(ge=1, le=WAIT_SECONDS_MAX)]


class ShardView(Struct, kw_only=True):
    """One shard: a part of all tenants and their jobs, which one server owns at a time."""

    shard: Annotated[int, doc("Its number.")]
    owner: Annotated[str | None, doc("The server that owns it now; null while none does.")]
    term: Annotated[int, doc("How often it was taken over so far.")]
    is_open: Annotated[bool, doc("Its owner gives its jobs out.")]
    tenants: Annotated[
        int, doc("Tenants that are at home there; one in several shards counts in each.")
    ]
    queued: Annotated[int, doc("Jobs that wait there; 1 000 are as many as are counted.")]


class MoveView(Struct, kw_only=True):
    """The move of a tenant to another shard."""

    tenant: Annotated[str, doc("Its name.")]
    from_shard: Annotated[int, doc("Where it was.")]
    to_shard: Annotated[int, doc("Where it goes; nobody owns that shard until it is there.")]
    state: Annotated[
        str,
        doc(
            "Draining: nothing has been moved yet. Returning: it was cancelled, and rows go back.",
            Literal["draining", "moving", "returning", "done", "called_off"],
        ),
    ]
    asked_at: Annotated[datetime, doc("When it was asked for.")]
    wait_seconds: Annotated[int, doc("For its runs to end, since then; or it is called off.")]
    finished_at: Annotated[datetime | None, doc("When it was over; null while it is under way.")]
    rows_moved: Annotated[int, doc("Of jobs, and of all that belongs to them.")]
    note: Annotated[str, doc("What it waits for, or why it was called off.")]


class ShardList(Struct, kw_only=True):
    """All shards, by number."""

    count: Annotated[int, doc("How many there are.")]
    tenants: Annotated[int, doc("In all of them, each once.")]
    shards: Annotated[list[ShardView], doc("Each of them.")]
    moves: Annotated[
        list[MoveView], doc("Of tenants: those under way first, then the last that are over.")
    ]


class TenantMove(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which tenant is to be moved, and where."""

    tenant: Annotated[str, doc("Its name.")]
    to: Annotated[ShardNumber, doc("A shard without tenants.")]
    wait_seconds: Annotated[
        WaitSeconds, doc("For its runs to end; after that the move is called off.")
    ] = WAIT_SECONDS


class MoveCancel(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose move is to be ended."""

    tenant: Annotated[str, doc("Its name.")]


class ShardSplit(Struct, kw_only=True, forbid_unknown_fields=True):
    """How many shards there are to be."""

    to: Annotated[ShardCount, doc("In all; never fewer than there are.")]


class ShardsSplit(Struct, kw_only=True):
    """What was done."""

    before: Annotated[int, doc("How many there were.")]
    count: Annotated[int, doc("How many there are.")]
