"""`fairway dead …`: look at dead letters, replay or discard them; what holds failing jobs back."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
from cyclopts import App, Parameter

from fairway.cli.remote import Json, Remote, screen, show_json, show_list, table
from fairway.core.errors import InvalidRequest

app = App(name="dead", help="Look at dead letters, replay or discard them.")

LOOK_SECONDS = 0.5


@Parameter(name="*")
@dataclass(frozen=True)
class Filters:
    """Which dead letters: what is not given does not narrow."""

    type: str | None = None
    pool: str | None = None
    fingerprint: str | None = None
    since: str | None = None
    until: str | None = None


ALL = Filters()


@app.command(name="list")
def list_(*, which: Filters = ALL, limit: int = 20, json: Json = False) -> None:
    """The newest dead letters that these filters match."""
    found = Remote("tenant").get("/v1/dead-letters", **asdict(which), limit=limit)
    rows = [
        (
            job["id"],
            job["type"],
            job["finished_at"][:19],
            (job["error"] or {}).get("reason", ""),
            _short(job["error"] or {}),
            job["fingerprint"],
        )
        for job in found["jobs"]
    ]
    lines = table(("id", "type", "died", "why", "error", "fingerprint"), rows)
    show_list(found, lines, "No dead letters.", json=json)


@app.command
def groups(*, json: Json = False) -> None:
    """Dead letters by cause, the largest group first."""
    found = Remote("tenant").get("/v1/dead-letters/groups")
    rows = [
        (
            f"{group['count']}{'' if group['count_is_exact'] else '+'}",
            group["type"],
            _short(group["error"] or {}),
            group["last_died_at"][:19],
            group["fingerprint"],
        )
        for group in found["groups"]
    ]
    lines = table(("count", "type", "error", "last", "fingerprint"), rows)
    show_list(found, lines, "No dead letters.", json=json)


@app.command
def show(id: str) -> None:
    """One dead letter with its payload and the history of its runs, as JSON."""
    show_json(Remote("tenant").get(f"/v1/dead-letters/{id}"))


@app.command
def replay(
    id: str | None = None,
    *,
    all: bool = False,
    which: Filters = ALL,
    payload: Path | None = None,
    per_second: int = 100,
    dry_run: bool = False,
    wait: bool = True,
) -> None:
    """Put dead letters back into the queue, with fresh counters: one by id, or all that match.

    Parameters
    ----------
    id
        One dead letter. Without it, the filters say which.
    all
        Every dead letter; needed when no filter is given.
    payload
        A file with a JSON object to use in place of the jobs' own arguments.
    per_second
        At most so many in a second.
    dry_run
        Only count.
    wait
        Show progress until it is done; Ctrl-C aborts it.
    """
    arguments = _arguments(payload) if payload else None
    remote = Remote("tenant")
    if id is not None:
        job = remote.call("POST", f"/v1/dead-letters/{id}/replay", {"payload": arguments})
        screen.print(f"{job['id']} is {job['state']}.")
        return
    query = _narrowed(which, all)
    body = {"payload": arguments, "per_second": per_second, "dry_run": dry_run}
    found = remote.call("POST", "/v1/dead-letters/replay", body, query)
    _follow(remote, found, wait)


@app.command
def discard(
    id: str | None = None,
    *,
    all: bool = False,
    which: Filters = ALL,
    dry_run: bool = False,
    wait: bool = True,
) -> None:
    """Take dead letters off the list: one by id, or all that match.

    Parameters
    ----------
    id
        One dead letter. Without it, the filters say which.
    all
        Every dead letter; needed when no filter is given.
    dry_run
        Only count.
    """
    remote = Remote("tenant")
    if id is not None:
        remote.call("DELETE", f"/v1/dead-letters/{id}")
        screen.print("Discarded.")
        return
    query = _narrowed(which, all)
    found = remote.call("POST", "/v1/dead-letters/discard", {"dry_run": dry_run}, query)
    _follow(remote, found, wait)


@app.command
def actions(*, json: Json = False) -> None:
    """Replays and discards of many, and how far each has come."""
    found = Remote("tenant").get("/v1/dead-letters/actions")
    rows = [
        (
            one["id"],
            one["kind"],
            one["state"],
            str(one["done"]),
            str(one["matched"]),
            one["created_at"][:19],
        )
        for one in found["actions"]
    ]
    lines = table(("id", "kind", "state", "done", "of", "began"), rows)
    show_list(found, lines, "No actions.", json=json)


@app.command
def abort(id: str) -> None:
    """Stop a replay or a discard; what is done stays done."""
    one = Remote("tenant").call("DELETE", f"/v1/dead-letters/actions/{id}")
    screen.print(f"Aborted after {one['done']} of {one['matched']}.")


def restraints() -> None:
    """What holds failing jobs back: circuits of dependencies, job types in quarantine."""
    found = Remote("tenant").get("/v1/restraints")
    for one in found["circuits"]:
        screen.print(
            f"{one['type']}: {one['dependency']} is away since {one['opened_at'][:19]};"
            f" next try in {one['next_probe_seconds']:.0f} s"
        )
    for one in found["quarantines"]:
        screen.print(f"{one['type']}: in quarantine since {one['since'][:19]}")
    if not (found["circuits"] or found["quarantines"]):
        screen.print("Nothing is held back.")


def events(*, kind: str | None = None, limit: int = 20) -> None:
    """What you should hear of, newest first."""
    found = Remote("tenant").get("/v1/events", kind=kind, limit=limit)
    for event in found["events"]:
        screen.print(f"{event['at'][:19]}  {event['kind']}  {event['detail']}")
    if not found["events"]:
        screen.print("No events.")


# -- helpers -------------------------------------------------------------------------------------


def _arguments(payload: Path) -> Any:
    try:
        return msgspec.json.decode(payload.read_bytes())
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"--payload {payload} is no JSON: {error}") from None


def _narrowed(which: Filters, all_: bool) -> dict[str, str | None]:
    query = asdict(which)
    if not all_ and not any(query.values()):  # one that is empty narrows nothing
        raise InvalidRequest("Say which: an id, a filter such as --type, or --all.")
    return query


def _follow(remote: Remote, found: dict[str, Any], wait: bool) -> None:
    """Show how far an action has come until it is over."""
    if "is_exact" in found:
        screen.print(f"{'' if found['is_exact'] else 'More than '}{found['matched']} match.")
        return
    path = f"/v1/dead-letters/actions/{found['id']}"
    try:
        while wait and found["state"] == "running":
            time.sleep(LOOK_SECONDS)
            found = remote.get(path)
            if screen.is_terminal:
                screen.print(f"{found['done']} of {found['matched']}", end="\r")
    except KeyboardInterrupt:
        found = remote.call("DELETE", path)
    screen.print(f"{found['kind']} {found['id']}: {found['state']}, {found['done']} done.")
    if found.get("error"):
        screen.print(f"The store refused it: {found['error']}")


def _short(error: dict[str, Any]) -> str:
    text = ": ".join(str(error[key]) for key in ("type", "message") if error.get(key))
    return text if len(text) <= 60 else text[:59] + "…"
