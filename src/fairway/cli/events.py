"""`fairway events`: a tenant's log of events, looked at or followed; and what is written to it."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter

from fairway.cli.remote import MINE, Remote, Whose
from fairway.cli.terminal.moments import age
from fairway.cli.terminal.output import Column, say, show_lines
from fairway.cli.terminal.tables import visible
from fairway.core.events.event import Event
from fairway.core.events.event_gap import EventGap, LogItem

app = App(name="events", help="What happened on this tenant's account: look, follow.")

PAGE = 1000
EVENTS = (
    Column("age", lambda one: age(one["at"])),
    Column("kind", "kind"),
    Column("subject", "subject"),
    Column("job", "job", "spare"),
    Column("detail", lambda one: _detail(one["data"]), "fold"),
    Column("position", "position", "spare"),
)


@Parameter(name="*")
@dataclass(frozen=True)
class WhichEvents:
    """Which events: what is not given does not narrow."""

    kind: Annotated[
        str | None, Parameter(help="Only of these kinds, such as job.dead,circuit.*")
    ] = None
    type: Annotated[str | None, Parameter(help="Only about these job types.")] = None
    job: Annotated[str | None, Parameter(help="Only of this job.")] = None


ALL = WhichEvents()


@app.default
@app.command
def ls(
    *,
    which: WhichEvents = ALL,
    limit: int = 20,
    job_events: bool | None = None,
    options: Whose = MINE,
) -> None:
    """What happened, newest first.

    Parameters
    ----------
    limit
        So many at most.
    job_events
        Before that: whether to write down what becomes of every job from now on.
    """
    remote = options.tenant()
    if job_events is not None:
        remote.call("PUT", "/v1/events/settings", {"job_events": job_events})
    found = _newest(remote, limit, **asdict(which))
    options.rows({"events": found}, found, EVENTS, "No events.")
    if not found and options.form == "table":
        settings = remote.get("/v1/events/settings")
        if not settings["job_events"]:
            say("What becomes of jobs is written down from `fairway events --job-events` on.")


@app.command
def tail(*, which: WhichEvents = ALL, after: str | None = None, options: Whose = MINE) -> None:
    """Events as they happen, oldest first, until Ctrl-C; with --json, a line of JSON for each.

    Parameters
    ----------
    after
        Begin after this position, or cursor; 0 for all that are kept. Left out: from now on.
    """
    from fairway.sdk.client.blocking import iterate
    from fairway.sdk.logs.event_log import Wanted

    client = options.tenant().client()
    wanted = Wanted(which.kind or "", which.type or "", which.job)
    for item in iterate(client.event_log.follow(after, wanted)):
        if options.form == "table":
            say(visible(_line(item)))
        else:
            show_lines([_record(item)])
        sys.stdout.flush()


def _record(item: LogItem) -> Any:
    if not isinstance(item, EventGap):
        return item
    several = {} if item.cursor is None else {"part": item.part, "cursor": item.cursor}
    return {"gap": {"from": item.first, "to": item.last, **several}}


def _line(item: LogItem) -> str:
    if isinstance(item, EventGap):
        where = "" if item.part is None else f" of shard {item.part}"
        return f"-- events {item.first} to {item.last}{where} were deleted before they were read --"
    return _told(item)


def _told(event: Event) -> str:
    at = event.at.astimezone().isoformat(sep=" ", timespec="milliseconds")[:23]
    words = (at, str(event.resume_after), event.kind, event.subject, event.job, _detail(event.data))
    return "  ".join(word for word in words if word)


def _newest(remote: Remote, most: int, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = None
    while len(found) < most:
        limit = min(most - len(found), PAGE)
        page = remote.get("/v1/events", **query, order="newest", limit=limit, after=after)
        found += page["events"]
        after = page["cursor"]
        if not page["has_more"]:
            break
    return found[:most]


def _detail(data: dict[str, Any]) -> str:
    if "detail" in data:
        return str(data["detail"])
    return ", ".join(f"{name} {value}" for name, value in data.items())
