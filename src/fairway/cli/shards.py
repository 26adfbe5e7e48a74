"""`fairway shards …`: who owns which, and more of them. Needs an operator's key."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.output import Column, Yes, agreed
from fairway.core.ownership.shard_sight import QUEUED_COUNTED_MAX

app = App(name="shards", help="Who owns which shard, and more shards (operator).")

SHARDS = (
    Column("shard", "shard"),
    Column("owner", lambda one: one["owner"] or "nobody"),
    Column("term", "term"),
    Column("open", lambda one: "yes" if one["is_open"] else "no"),
    Column("tenants", "tenants"),
    Column("queued", lambda one: _counted(one["queued"])),
)


@app.default
@app.command(name=("ls", "list"))
def list_(*, options: Options = PLAIN) -> None:
    """Every shard: its owner, and what is in it."""
    found = options.operator().get("/v1/shards")
    options.rows(found, found["shards"], SHARDS, "No shards.")


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
