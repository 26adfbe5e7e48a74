"""`fairway servers` and `fairway shards …`: who is there, and who owns which. Operators' keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options, Remote
from fairway.cli.terminal.job_text import counted
from fairway.cli.terminal.output import Column, Yes, agreed, say
from fairway.core.errors import InvalidRequest
from fairway.core.ids import FIRST_SHARD, SHARDS_MAX
from fairway.core.insight.spans import span
from fairway.core.ownership.shard_sight import MORE_AT_ONCE, QUEUED_COUNTED_MAX
from fairway.core.ownership.tenant_move import WAIT_SECONDS_MAX
from fairway.sdk.durations import seconds_of

app = App(name="shards", help="Who owns which shard; more shards; a tenant to another (operator).")

PATH = "/v1/servers"
MOVES_OVER_SHOWN = 3
OWNERS_TOLD = 4  # by name, those with most shards
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
    moves = shown_moves(found["moves"])
    if moves and options.form == "table":
        options.rows(found, moves, MOVES, "")
    options.rows(found, found["shards"], SHARDS, "No shards.")
    if options.form == "table":
        say(f"\n{_in_all(found['shards'], found.get('tenants'))}")


def _in_all(shards: list[dict[str, Any]], whole: int | None) -> str:
    """`whole`: the tenants, each once; a server of the build before does not say."""
    owners = Counter(one["owner"] or "nobody" for one in shards)
    told = [f"{count} owned by {name}" for name, count in owners.most_common(OWNERS_TOLD)]
    left = sum(owners.values()) - sum(count for _, count in owners.most_common(OWNERS_TOLD))
    told += [f"{left} by others"] if left else []
    least = "at least " if any(one["queued"] >= QUEUED_COUNTED_MAX for one in shards) else ""
    tenants, queued = (sum(one[name] for one in shards) for name in ("tenants", "queued"))
    parts = "" if whole in (None, tenants) else f" in {tenants} parts"
    homed = counted(tenants if whole is None else whole, "tenant") + parts
    return (
        f"In all {counted(len(shards), 'shard')}: {', '.join(told)};"
        f" {homed}, {least}{counted(queued, 'queued job')}."
    )


def shown_moves(moves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those under way, and the last few that are over: why one was called off is told there."""
    over = [one for one in moves if one["finished_at"] is not None]
    return [one for one in moves if one["finished_at"] is None] + over[:MOVES_OVER_SHOWN]


@app.command
def move(
    tenant: str,
    /,
    *,
    to: int | None = None,
    wait: str | None = None,
    cancel: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Move a tenant to a shard without tenants, while everything runs.

    The tenant stands still meanwhile: its keys hear 503 with Retry-After, and nothing of it starts.
    If its runs do not end in time the move is called off. `fairway shards ls` shows how far it is,
    which runs it waits for, and why one was called off.

    Parameters
    ----------
    tenant
        Its name.
    to
        The number of the shard.
    wait
        How long its runs may take to end, as in 90s, 10m or 2h (default 1m).
    cancel
        End the move that is under way, instead of --to and --wait: at once while its runs end. Rows
        that were moved go back, in as long as they took, and the tenant stands still until then.
    yes
        Do not ask.
    """
    if cancel:
        if to is not None or wait is not None:
            raise InvalidRequest(
                "--cancel ends the move that is under way: say either that, or where to with --to"
                " (and --wait). A tenant that goes back is moved again when it is there."
            )
        _cancel(tenant, options)
        return
    if to is None:
        raise InvalidRequest("Say where to with --to, or --cancel to end a move.")
    remote = options.operator()
    body = {"tenant": tenant, "to": to, "wait_seconds": _whole_seconds(wait or "1m")}
    known = remote.get(f"/v1/tenants/{quote(tenant, safe='')}")
    if _may_move(known, to, remote):  # else it is refused, and nobody is asked
        agreed(f"{tenant} stands still until all of it is in shard {to}.", yes=yes)
    done = remote.call("POST", "/v1/shards/move", body)
    options.record(
        done,
        f"{tenant} moves from shard {done['from_shard']} to {done['to_shard']}."
        " `fairway shards ls` shows how far it is.",
    )


def _cancel(tenant: str, options: Options) -> None:
    done = options.operator().call("POST", "/v1/shards/move/cancel", {"tenant": tenant})
    home = done["from_shard"]
    goes_on = f"{tenant} goes on in shard {home}."
    if done["finished_at"] is None:
        goes_on = (
            f"{tenant} stands still until all of it is in shard {home} again; `fairway shards ls`"
            " shows how far that is."
        )
    options.record(done, f"{done['note']} {goes_on}")


def _may_move(tenant: Mapping[str, Any], to: int, remote: Remote) -> bool:
    """As far as can be told from here; the server has the last word."""
    if len(tenant["shards"]) > 1 or tenant["home_region"] is not None:
        return False
    shards = remote.get("/v1/shards")["shards"]
    empty = {one["shard"] for one in shards if not one["tenants"]}
    return to in empty and to != FIRST_SHARD


def _whole_seconds(text: str) -> int:
    try:
        found = max(round(seconds_of(text)), 1)
    except ValueError as error:
        raise InvalidRequest(f"--wait: {error}.") from None
    if found > WAIT_SECONDS_MAX:
        raise InvalidRequest(f"--wait: {text} is too long: {span(WAIT_SECONDS_MAX)} at most.")
    return found


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
    there = remote.get("/v1/shards")["count"]
    most = min(there + MORE_AT_ONCE, SHARDS_MAX)
    if there < to <= most:  # else it is refused, or nothing is done: nobody is asked
        what = f"There are {there} shards; this makes them {to}, and they never become fewer again."
        agreed(what, yes=yes)
    done = remote.call("POST", "/v1/shards/split", {"to": to})
    more = f"There are {done['count']} shards now; there were {done['before']}."
    is_news = done["count"] > done["before"]
    options.record(done, more if is_news else f"There are {done['count']} shards already.")


def _counted(queued: int) -> str:
    return f"{queued}+" if queued >= QUEUED_COUNTED_MAX else str(queued)
