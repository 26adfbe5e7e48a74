"""Shards on the wire: who owns each, and how many there are."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from fairway.wire.doc import doc

ShardCount = Annotated[int, Meta(ge=1, le=4096)]


class ShardView(Struct, kw_only=True):
    """One shard: a part of all tenants and their jobs, which one server owns at a time."""

    shard: Annotated[int, doc("Its number.")]
    owner: Annotated[str | None, doc("The server that owns it now; null while none does.")]
    term: Annotated[int, doc("How often it was taken over so far.")]
    is_open: Annotated[bool, doc("Its owner gives its jobs out.")]
    tenants: Annotated[int, doc("Tenants that are at home there.")]
    queued: Annotated[int, doc("Jobs that wait there; 1 000 are as many as are counted.")]


class ShardList(Struct, kw_only=True):
    """All shards, by number."""

    count: Annotated[int, doc("How many there are.")]
    shards: Annotated[list[ShardView], doc("Each of them.")]


class ShardSplit(Struct, kw_only=True, forbid_unknown_fields=True):
    """How many shards there are to be."""

    to: Annotated[ShardCount, doc("In all; never fewer than there are.")]


class ShardsSplit(Struct, kw_only=True):
    """What was done."""

    before: Annotated[int, doc("How many there were.")]
    count: Annotated[int, doc("How many there are.")]
