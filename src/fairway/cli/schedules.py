"""`fairway schedules …`: jobs that come again and again. Needs a tenant's key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from cyclopts import App

from fairway.cli.remote import Json, Remote, screen, show_json, show_list, table
from fairway.core.errors import InvalidRequest

app = App(name="schedules", help="Recurring schedules: make, look, pause, run now, make up.")

PATH = "/v1/schedules/"


@app.command(name="list")
def list_(*, json: Json = False) -> None:
    """All schedules, in plain English, with their next run."""
    found, rows = _all(), []
    for one in found:
        mark = "paused" if one["paused"] else "" if one["next_runs"] else "over"
        following = _local(one["next_runs"][0]) if one["next_runs"] else "–"
        rows.append((one["name"], one["description"], one["type"], following, mark))
    lines = table(("name", "when", "job", "next run", ""), rows)
    show_list({"schedules": found}, lines, "No schedules.", json=json)


@app.command
def show(name: str) -> None:
    """One schedule, whole, as JSON."""
    show_json(Remote("tenant").get(PATH + name))


@app.command
def put(
    name: str,
    *,
    type: str,
    cron: str | None = None,
    every: float | None = None,
    tz: str = "UTC",
    payload: str = "{}",
    pool: str | None = None,
    tick: str | None = None,
    jitter: float = 0,
    overlap: Literal["allow", "skip", "queue_one", "cancel_running"] = "skip",
    catch_up: Literal["none", "last", "all"] = "last",
    dry_run: bool = False,
) -> None:
    """Make or replace a schedule; prints it in plain English with its next runs.

    Parameters
    ----------
    type
        The job type that each tick runs.
    cron
        Minute, hour, day of month, month, day of week; seconds may come first.
    every
        An interval in seconds, instead of cron.
    tz
        The time zone that the expression means.
    payload
        The handler's arguments, as a JSON object.
    tick
        The handler's argument that gets the tick.
    jitter
        Spread the runs over so many seconds after the tick.
    overlap
        What a tick does while the run before it is not over.
    catch_up
        Which missed ticks are run after an outage.
    dry_run
        Only show what it would do.
    """
    body: dict[str, Any] = {
        "type": type,
        "cron": cron,
        "every_seconds": every,
        "timezone": tz,
        "payload": _object(payload),
        "pool": pool,
        "tick_argument": tick,
        "jitter_seconds": jitter,
        "overlap": overlap,
        "catch_up": catch_up,
    }
    where = ("POST", "/v1/schedule-preview") if dry_run else ("PUT", PATH + name)
    _tell(Remote("tenant").call(*where, body))


@app.command
def delete(name: str) -> None:
    """Delete a schedule; jobs that it made stay."""
    Remote("tenant").call("DELETE", PATH + name)
    screen.print(f"Deleted: {name}")


@app.command
def pause(name: str) -> None:
    """No tick makes a job until it is resumed."""
    Remote("tenant").call("POST", f"{PATH}{name}/pause")
    screen.print(f"Paused: {name}")


@app.command
def resume(name: str) -> None:
    """Go on from the next tick."""
    _tell(Remote("tenant").call("POST", f"{PATH}{name}/resume"))


@app.command
def trigger(name: str) -> None:
    """Run it once, now; prints the job's id."""
    screen.print(Remote("tenant").call("POST", f"{PATH}{name}/trigger")["id"])


@app.command
def backfill(name: str, *, since: str, until: str) -> None:
    """Run the ticks of a past range that have no run, e.g. --since 2026-01-01T00:00:00Z."""
    body = {"since": since, "until": until}
    found = Remote("tenant").call("POST", f"{PATH}{name}/backfill", body)
    screen.print(f"{found['made']} runs made, {found['already']} ticks had theirs.")


@app.command
def runs(name: str, *, limit: int = 20, json: Json = False) -> None:
    """What became of its newest ticks."""
    found = Remote("tenant").get(f"{PATH}{name}/runs", limit=limit)
    rows = [
        (_local(run["tick"]), run["outcome"], run["cause"], run["job"] or "–")
        for run in found["runs"]
    ]
    show_list(found, table(("tick", "outcome", "cause", "job"), rows), "No runs yet.", json=json)


@app.command
def sync(target: str, *, prune: bool = False) -> None:
    """Bring the schedules that an app declares to the server.

    Parameters
    ----------
    target
        The app, as module:app or file.py:app.
    prune
        Delete schedules that this app declared before and does not any more.
    """
    from fairway.sdk.app import App as Program
    from fairway.sdk.loading import LoadError

    try:
        program = Program.load(target)
    except LoadError as error:  # what the app itself raises keeps its stack
        raise InvalidRequest(f"{error}.") from None
    for line in program.sync_schedules(prune=prune):
        screen.print(line)


def _all() -> list[dict[str, Any]]:
    remote, found, cursor = Remote("tenant"), [], None
    while True:
        page = remote.get("/v1/schedules", limit=200, cursor=cursor)
        found += page["schedules"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def _tell(found: dict[str, Any]) -> None:
    screen.print(found["description"])
    for moment in found["next_runs"]:
        screen.print(f"  {_local(moment)}")


def _local(text: str) -> str:
    """In the reader's own zone."""
    moment = datetime.fromisoformat(text).astimezone()
    same_year = moment.year == datetime.now(UTC).year
    return f"{moment:%a %d %b %H:%M:%S %Z}" if same_year else f"{moment:%d %b %Y %H:%M:%S %Z}"


def _object(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"--payload is no JSON: {error}") from None
