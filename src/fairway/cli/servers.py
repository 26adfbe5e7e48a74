"""`fairway servers`: which servers there are, and who owns how many shards. An operator's key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.output import Column
from fairway.core.insight.spans import span

PATH = "/v1/servers"
WORDS = {"answers_only": "answers only", "standing_in": "stands in"}


def _age(one: Mapping[str, Any]) -> str:
    seconds = one["heartbeat_age_seconds"]
    return "" if seconds is None else f"{span(seconds)} ago"


def _shards(one: Mapping[str, Any]) -> str:
    closed = one["shards"] - one["shards_open"]
    return f"{one['shards']}, {closed} not open yet" if closed else str(one["shards"])


SERVERS = (
    Column("server", "name"),
    Column("state", lambda one: WORDS.get(one["state"], one["state"])),
    Column("shards", _shards),
    Column("term", lambda one: "" if one["newest_term"] is None else str(one["newest_term"])),
    Column("heartbeat", _age),
    Column("url", "url", "spare"),
)


def servers(*, options: Options = PLAIN) -> None:
    """Servers that are there, or were within the hour: their shards, terms and heartbeats."""
    found = options.operator().get(PATH)
    options.rows(found, found["items"], SERVERS, "No server was heard of.")
