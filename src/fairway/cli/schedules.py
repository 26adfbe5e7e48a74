"""`fairway schedules …`: jobs that come again and again. Needs a tenant's key."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from fairway.cli.remote import MINE, Options, Whose
from fairway.cli.terminal.list_filters import LINES_MAX
from fairway.cli.terminal.moments import past
from fairway.cli.terminal.output import Column, say
from fairway.core.errors import InvalidRequest

app = App(name="schedules", help="Recurring schedules: make, look, pause, run now, make up.")

PATH = "/v1/schedules/"


SCHEDULES = (
    Column("name", "name"),
    Column("when", "description", "fold"),
    Column("next run", lambda one: _next(one)),
    Column("job", "type", "spare"),
)
RUNS = (
    Column("tick", lambda run: _local(run["tick"])),
    Column("job", "job"),
    Column("outcome", "outcome"),
    Column("state", "state"),
    Column("cause", "cause", "spare"),
)


@app.command(name=("ls", "list"))
def list_(*, options: Whose = MINE) -> None:
    """All schedules, in plain English, with their next run."""
    found = options.tenant().pages("/v1/schedules", "schedules", LINES_MAX)
    options.rows({"schedules": found}, found, SCHEDULES, "No schedules.")


@app.command
def show(name: str, *, options: Whose = MINE) -> None:
    """One schedule, whole."""
    options.record(options.tenant().get(PATH + name))


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
    options: Whose = MINE,
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
    pool
        The pool to run in (default: the type's own).
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
    _tell(options.tenant().call(*where, body), options)


@app.command(name=("delete", "rm"))
def delete(name: str, *, options: Whose = MINE) -> None:
    """Delete a schedule; jobs that it made stay."""
    options.tenant().call("DELETE", PATH + name)
    options.record({"name": name, "deleted": True}, f"Deleted: {name}")


@app.command
def pause(name: str, *, options: Whose = MINE) -> None:
    """No tick makes a job until it is resumed."""
    found = options.tenant().call("POST", f"{PATH}{name}/pause")
    options.record(found, f"Paused: {name}")


@app.command
def resume(name: str, *, options: Whose = MINE) -> None:
    """Go on from the next tick."""
    _tell(options.tenant().call("POST", f"{PATH}{name}/resume"), options)


@app.command
def trigger(name: str, *, options: Whose = MINE) -> None:
    """Run it once, now; prints the job's id."""
    job = options.tenant().call("POST", f"{PATH}{name}/trigger")
    options.record(job, job["id"])


@app.command
def backfill(name: str, *, since: str, until: str = "0s", options: Whose = MINE) -> None:
    """Run the ticks of a past range that have no run.

    Parameters
    ----------
    since
        From then on: 2d (ago), yesterday, or a time as in 2026-01-01T00:00Z.
    until
        Up to then (default: now).
    """
    now = datetime.now(UTC)
    body = {"since": past(since, "since", now), "until": past(until, "until", now)}
    found = options.tenant().call("POST", f"{PATH}{name}/backfill", body)
    options.record(found, f"{found['made']} runs made, {found['already']} ticks had theirs.")


@app.command
def runs(name: str, *, limit: int = 20, options: Whose = MINE) -> None:
    """What became of its newest ticks.

    Parameters
    ----------
    limit
        So many at most.
    """
    found = options.tenant().get(f"{PATH}{name}/runs", limit=limit)
    options.rows(found, found["runs"], RUNS, "No runs yet.")


@app.command
def sync(
    target: str,
    *,
    prune: bool = False,
    beside_worker: Annotated[bool, Parameter(show=False, negative=())] = False,
) -> int:
    """Bring the schedules that an app declares to the server.

    Parameters
    ----------
    target
        The app, as module:app or file.py:app.
    prune
        Delete schedules that this app declared before and does not any more.
    beside_worker
        One tells why the app cannot be loaded.
    """
    from fairway.sdk.app import App as Program
    from fairway.sdk.loading import LoadError

    try:
        program = Program.load(target)
    except LoadError as error:
        if beside_worker:
            return os.EX_CONFIG
        raise InvalidRequest(str(error)) from None
    for line in program.sync_schedules(prune=prune):
        say(line)
    return 0


def _tell(found: dict[str, Any], options: Options) -> None:
    lines = [found["description"], *(f"  {_local(moment)}" for moment in found["next_runs"])]
    options.record(found, "\n".join(lines))


def _next(one: Any) -> str:
    if one["paused"]:
        return "paused"
    return _local(one["next_runs"][0]) if one["next_runs"] else "over"


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
