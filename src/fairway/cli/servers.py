"""`fairway servers` and `fairway shards …`: who is there, and who owns which. Operators' keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.output import Column, Yes, agreed
from fairway.core.insight.spans import span
from fairway.core.ownership.shard_sight import QUEUED_COUNTED_MAX

app = App(name="shards", help="Who owns which shard, and more shards (operator).")

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


SHARDS = (
    Column("shard", "shard"),
    Column("owner", lambda one: one["owner"] or "nobody"),
    Column("term", "term"),
    Column("open", lambda one: "yes" if one["is_open"] else "no"),
    Column("tenants", "tenants"),
    Column("queued", lambda one: _counted(one["queued"])),
)


MOVES = (
    Column("tenant moves", "tenant"),
    Column("from", "from_shard"),
    Column("to", "to_shard"),
    Column("state", lambda one: one["state"].replace("_", " ")),
    Column("rows", "rows_moved"),
    Column("note", "note", "spare"),
)


@app.default
@app.command(name=("ls", "list"))
def list_(*, options: Options = PLAIN) -> None:
    """Every shard: its owner, and what is in it; and tenants that are on their way to another."""
    found = options.operator().get("/v1/shards")
    moves = [one for one in found["moves"] if one["finished_at"] is None]
    if moves and options.form == "table":
        options.rows(found, moves, MOVES, "")
    options.rows(found, found["shards"], SHARDS, "No shards.")


@app.command
def move(
    tenant: str,
    /,
    *,
    to: Annotated[int, Parameter(required=True)],
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Move a tenant to a shard without tenants, while everything runs.

    The tenant stands still meanwhile: its keys hear 503 with Retry-After. If its runs do not end
    within a minute the move is called off. `fairway shards ls` shows how far it is.

    Parameters
    ----------
    tenant
        Its name.
    to
        The number of the shard.
    yes
        Do not ask.
    """
    remote = options.operator()
    agreed(f"{tenant} stands still until it is in shard {to}.", yes=yes)
    done = remote.call("POST", "/v1/shards/move", {"tenant": tenant, "to": to})
    options.record(done, f"{tenant} moves from shard {done['from_shard']} to {done['to_shard']}.")


@app.command
def split(
    *,
    to: Annotated[int, Parameter(required=True)],
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Make the shards more, while everything runs. They never become fewer.

    New tenants are spread over all; those that are there stay where they are.

    Parameters
    ----------
    to
        How many there are to be in all.
    yes
        Do not ask.
    """
    remote = options.operator()
    agreed(f"This makes {to} shards; they never become fewer again.", yes=yes)
    done = remote.call("POST", "/v1/shards/split", {"to": to})
    options.record(done, f"{done['count']} shards; there were {done['before']}.")


def _counted(queued: int) -> str:
    return f"{queued}+" if queued >= QUEUED_COUNTED_MAX else str(queued)
