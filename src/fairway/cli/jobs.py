"""`fairway jobs …`: hand one in, look, follow, ask why one waits, move or cancel some."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from fairway.cli.bulk import Wish, act_on_many
from fairway.cli.remote import MINE, PLAIN, Options, Remote, Whose
from fairway.cli.terminal.job_text import (
    compact,
    details,
    error_lines,
    json_lines,
    ran,
    told,
)
from fairway.cli.terminal.list_filters import Since, Until, check_limit, query_of
from fairway.cli.terminal.moments import age, future, local, seconds
from fairway.cli.terminal.output import (
    Column,
    Record,
    Yes,
    is_terminal,
    painted,
    say,
    show_lines,
    show_table,
)
from fairway.cli.terminal.tables import visible
from fairway.core.errors import InvalidRequest, Unavailable

app = App(name="jobs", help="Hand one in, look, follow, ask why one waits, move or cancel.")
app.command("fairway.cli.job_logs:logs", name="logs", help="What a job said; -f until it ends.")

LOOK_SECONDS = 1.0
SOON_SECONDS = 3  # a job that still waits then should say what for
WAIT_SECONDS = 20  # less than a client's patience for one answer
PATIENCE = 30  # times in a row that a server may say: not now
FINAL = ("succeeded", "dead", "cancelled", "expired")
EXAMPLES = 5  # of what a bulk act would meet

COLUMNS = (
    Column("id", "id"),
    Column("type", "type"),
    Column("state", "state"),
    Column("age", lambda job: age(job["created_at"])),
    Column("pool", "pool", "spare"),
    Column("attempts", "attempts", "spare"),
    Column("ran", ran, "spare"),
    Column("due", lambda job: _due(job), "spare"),
)


def _due(job: Record) -> str:
    """Of one that has ended it says no more what to expect."""
    waits = job["execute_at"] and job["state"] not in FINAL
    return age(job["execute_at"]) if waits else "–"


@Parameter(name="*")
@dataclass(frozen=True)
class Which:
    """Which jobs: what is not given does not narrow."""

    state: Annotated[str | None, Parameter(help="One or more states, with commas between.")] = None
    type: Annotated[str | None, Parameter(help="A job type.")] = None
    pool: Annotated[str | None, Parameter(help="A pool.")] = None
    tag: Annotated[str | None, Parameter(help="A tag.")] = None
    since: Since = None
    until: Until = None


ALL = Which()


@app.command(name=("ls", "list"))
def list_(*, which: Which = ALL, limit: int = 20, options: Whose = MINE) -> None:
    """The newest jobs that these filters match.

    Parameters
    ----------
    limit
        So many at most.
    """
    check_limit(limit)
    found = options.tenant().pages("/v1/jobs", "jobs", limit, **query_of(which))
    options.rows({"jobs": found}, found, COLUMNS, "No jobs.")
    if len(found) == limit and options.form == "table" and is_terminal():
        say(painted(f"the newest {limit}; --limit shows more", "dim"))


@app.command
def show(id: str, *, options: Whose = MINE) -> None:
    """One job: its times, its error with the stack, its arguments and what became of its runs."""
    job = options.tenant().get(f"/v1/jobs/{id}")
    options.record(job, lambda: "\n".join(told(job)))


@app.command
def submit(
    type: str,
    *arguments: str,
    payload: str | None = None,
    pool: str | None = None,
    priority: int | None = None,
    delay: str | None = None,
    at: str | None = None,
    idempotency_key: str | None = None,
    wait: bool = False,
    options: Options = PLAIN,
) -> int:
    """Hand in a job and print its id.

    Parameters
    ----------
    type
        The job type.
    arguments
        The handler's arguments as name=value; a value that is JSON is taken as that.
    payload
        All arguments instead, as a JSON object, or as @file.
    pool
        The pool to run in (default: the type's own).
    priority
        Order among your own jobs: 9 goes before 0.
    delay
        Not before this long from now: 30s, 10m, 2h.
    at
        Not before this moment.
    idempotency_key
        A name for this wish: a second submission with it makes no second job.
    wait
        Follow it to its end; the exit status is 1 if it did not succeed.
    """
    body: dict[str, Any] = {
        "type": type,
        "payload": _payload(payload, arguments),
        "pool": pool,
        "priority": priority,
        "delay_seconds": seconds(delay, "--delay"),
        "execute_at": future(at, "at", datetime.now(UTC)),
    }
    wish = {name: value for name, value in body.items() if value is not None}
    remote = options.tenant()
    headers = {"idempotency-key": idempotency_key} if idempotency_key else {}
    job = remote.call("POST", "/v1/jobs", wish, headers=headers)
    if wait:
        return _follow(remote, job["id"], options)
    options.record(job, job["id"])
    return 0


@app.command
def watch(id: str, *, options: Whose = MINE) -> int:
    """Follow one job to its end, a line for each change. Exit status 1 if it did not succeed."""
    return _follow(options.tenant(), id, options)


@app.command
def tail(*, which: Which = ALL, limit: int = 10, options: Whose = MINE) -> None:
    """Jobs as they come and change state, until Ctrl-C.

    Parameters
    ----------
    limit
        How many of those that are there already are shown first.
    """
    remote, first = options.tenant(), True
    seen: dict[str, str] = {}
    while True:
        found = remote.get("/v1/jobs", **query_of(which), limit=100)["jobs"]
        fresh = [job for job in reversed(found) if seen.get(job["id"]) != job["state"]]
        for job in fresh[max(0, len(fresh) - limit) :] if first else fresh:
            _line_of(job, options)
        seen, first = {job["id"]: job["state"] for job in found}, False
        time.sleep(LOOK_SECONDS)


@app.command
def move(
    id: str, *, delay: str | None = None, at: str | None = None, options: Whose = MINE
) -> None:
    """Give a job that waits for its time another time.

    Parameters
    ----------
    delay
        This long from now: 30s, 10m, 2h.
    at
        A moment.
    """
    if (delay is None) == (at is None):
        raise InvalidRequest("Say when: --delay 10m, or --at 2026-01-31T12:00.")
    when = {
        "delay_seconds": seconds(delay, "--delay"),
        "execute_at": future(at, "at", datetime.now(UTC)),
    }
    body = {name: value for name, value in when.items() if value is not None}
    job = options.tenant().call("PATCH", f"/v1/jobs/{id}", body)
    options.record(job, f"Due {local(job['execute_at'])}, {age(job['execute_at'])}.")


@app.command
def cancel(id: str, *, children: bool = False, options: Whose = MINE) -> None:
    """Cancel a job: at once while it waits, else its worker is asked to stop.

    Parameters
    ----------
    children
        Also what its run started, and what came of that.
    """
    query = {"children": "true"} if children else {}
    job = options.tenant().call("DELETE", f"/v1/jobs/{id}", query=query)
    options.record(
        job, job["state"] if job["finished_at"] else "It runs; its worker was asked to stop."
    )


@app.command
def cancel_all(
    *,
    all: bool = False,
    which: Which = ALL,
    dry_run: bool = False,
    wait: bool = True,
    yes: Yes = False,
    options: Whose = MINE,
) -> None:
    """Cancel every job that has not ended and matches. Shows what would go, and asks.

    Parameters
    ----------
    all
        Every job that has not ended; needed when no filter is given.
    dry_run
        Only count.
    wait
        Show progress until it is done; Ctrl-C aborts it.
    """
    query: dict[str, Any] = query_of(which)
    if not (all or dry_run or any(query.values())):
        raise InvalidRequest("Say which: a filter such as --type, or --all.")
    remote = options.tenant()
    examples = partial(_preview, remote, query)
    wish = Wish("cancel", query, "job", examples, {}, all, dry_run, yes, wait)
    act_on_many(remote, wish, options)


@app.command(name=["why", "explain"])
def why(id: str, *, options: Whose = MINE) -> None:
    """Say why a job waits, its place in line and when it may start; or how it ended."""
    remote = options.tenant()
    found = remote.get(f"/v1/jobs/{id}/explain")

    def text() -> str:
        said = [f"  {line}" for line in details(found, datetime.now(UTC))]
        if found["state"] == "dead":
            said += error_lines(remote.get(f"/v1/jobs/{id}"))
            said.append(f"  → fairway jobs logs {id}; when it is mended: fairway dead replay {id}")
        return "\n".join([f"{painted(found['state'], 'bold')}: {found['detail']}", *said])

    options.record(found, text)


# -- many ----------------------------------------------------------------------------------------


def _preview(remote: Remote, query: dict[str, Any]) -> None:
    states = query["state"] or "scheduled,queued,running"
    examples = remote.get("/v1/jobs", **query | {"state": states, "limit": EXAMPLES})["jobs"]
    show_table(COLUMNS, examples)


# -- one -----------------------------------------------------------------------------------------


def _payload(payload: str | None, arguments: tuple[str, ...]) -> Any:
    if payload is not None and arguments:
        raise InvalidRequest("Give the arguments as name=value or as --payload, not both.")
    if payload is not None:
        text = Path(payload[1:]).read_text("utf-8") if payload.startswith("@") else payload
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"--payload is no JSON: {error}.") from None
    found = {}
    for text in arguments:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidRequest(
                f"{text!r}: write an argument as name=value, or all of them as --payload '{{…}}'."
            )
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _follow(remote: Remote, id_: str, options: Options) -> int:
    job: dict[str, Any] = {}
    try:
        for job in _changes(remote, id_, partial(_say_why, remote, id_, options)):
            _line_of(job, options)
    except KeyboardInterrupt:
        sys.stderr.write(f"\nThe job goes on: `fairway jobs show {id_}` shows it.\n")
        raise
    if options.form == "table":
        for line in (*error_lines(job), *json_lines("result", job.get("result"))):
            say(line)
    return 0 if job["state"] == "succeeded" else 1


def _say_why(remote: Remote, id_: str, options: Options) -> None:
    """Who looks at a job that waits for want of a worker would wait as well."""
    if options.form == "table":
        try:
            found = remote.get(f"/v1/jobs/{id_}/explain")
            lines = [found["detail"], *details(found, datetime.now(UTC))]
        except Unavailable as error:  # its home region is away: that is why
            lines = [error.message]
        for line in lines:
            say(f"          {line}")


def _changes(remote: Remote, id_: str, still_waits: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """The job as it stands, and again at every change, until its end.

    `still_waits` is called once, when it is queued and nothing has happened for a while.
    """
    known, failures, wait_seconds, job = "", 0, SOON_SECONDS, dict[str, Any]()
    while True:
        headers = {"prefer": f"wait={wait_seconds}", "if-none-match": known} if known else {}
        reply = remote.reply("GET", f"/v1/jobs/{id_}", headers=headers)
        if reply.status == 503 and failures < PATIENCE:  # a server that is being replaced
            failures += 1
            time.sleep(LOOK_SECONDS)
            continue
        failures = 0
        if known and wait_seconds == SOON_SECONDS:
            wait_seconds = WAIT_SECONDS
            if reply.status == 304 and job["state"] == "queued":
                still_waits()
        if reply.status != 304:
            job = remote.read(reply)
            yield job
            if job["state"] in FINAL:
                return
        known = reply.etag or known


def _line_of(job: dict[str, Any], options: Options) -> None:
    if options.form != "table":
        show_lines([job])
        return
    progress = job.get("progress")
    so_far = "" if progress is None else f"  {compact(progress)}"
    state = f"{job['state']:<9}"
    styles = {"succeeded": "green", "dead": "red", "running": "cyan"}
    said = painted(state, styles[job["state"]]) if job["state"] in styles else state
    now = datetime.now(UTC).astimezone()
    say(f"{now:%T}  {job['id']}  {said}  {visible(job['type'] + so_far)}")
