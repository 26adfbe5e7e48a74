"""`fairway dead …`: look at dead letters, replay or discard them; what holds failing jobs back."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options, Remote
from fairway.cli.terminal.job_text import told
from fairway.cli.terminal.moments import age, past, span
from fairway.cli.terminal.output import Column, Yes, agreed, is_terminal, say, show_table
from fairway.core.errors import InvalidRequest

app = App(name="dead", help="Look at dead letters, replay or discard them.")

LOOK_SECONDS = 0.5
LIST_MAX = 10_000
EXAMPLES = 5  # of what a bulk act would meet

LETTERS = (
    Column("id", "id"),
    Column("type", "type"),
    Column("died", lambda job: age(job["finished_at"])),
    Column("error", lambda job: _error(job["error"] or {}), "fold"),
    Column("why", lambda job: (job["error"] or {}).get("reason"), "spare"),
    Column("fingerprint", "fingerprint", "spare"),
)
GROUPS = (
    Column("count", lambda one: f"{one['count']}{'' if one['count_is_exact'] else '+'}"),
    Column("type", "type"),
    Column("fingerprint", "fingerprint"),
    Column("last", lambda one: age(one["last_died_at"])),
    Column("error", lambda one: _error(one["error"] or {}), "fold"),
)
ACTIONS = (
    Column("id", "id"),
    Column("kind", "kind"),
    Column("state", "state"),
    Column("done", "done"),
    Column("of", "matched"),
    Column("began", lambda one: age(one["created_at"]), "spare"),
)


@Parameter(name="*")
@dataclass(frozen=True)
class Filters:
    """Which dead letters: what is not given does not narrow."""

    type: Annotated[str | None, Parameter(help="A job type.")] = None
    pool: Annotated[str | None, Parameter(help="A pool.")] = None
    fingerprint: Annotated[
        str | None, Parameter(help="A cause, as `fairway dead groups` shows it.")
    ] = None
    since: Annotated[
        str | None, Parameter(help="Submitted since then: 30m, 2h, 1d, yesterday, or a time.")
    ] = None
    until: Annotated[str | None, Parameter(help="Submitted before then.")] = None

    def query(self) -> dict[str, str | None]:
        now = datetime.now(UTC)
        moments = {name: past(getattr(self, name), name, now) for name in ("since", "until")}
        return asdict(self) | moments


ALL = Filters()


@app.command(name=("ls", "list"))
def list_(*, which: Filters = ALL, limit: int = 20, options: Options = PLAIN) -> None:
    """The newest dead letters that these filters match.

    Parameters
    ----------
    limit
        So many at most.
    """
    if not 1 <= limit <= LIST_MAX:
        raise InvalidRequest(f"--limit is a number from 1 to {LIST_MAX}.")
    found = options.tenant().pages("/v1/dead-letters", "jobs", limit, **which.query())
    options.rows({"jobs": found}, found, LETTERS, "No dead letters.")


@app.command
def groups(*, options: Options = PLAIN) -> None:
    """Dead letters by cause, the largest group first."""
    found = options.tenant().get("/v1/dead-letters/groups")
    options.rows(found, found["groups"], GROUPS, "No dead letters.")


@app.command
def show(id: str, *, options: Options = PLAIN) -> None:
    """One dead letter: its error with the stack, its arguments and the history of its runs."""
    job = options.tenant().get(f"/v1/dead-letters/{id}")
    options.record(job, lambda: "\n".join(told(job)))


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
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Put dead letters back into the queue, with fresh counters: one by id, or all that match.

    Of many, it shows what would go, and asks.

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
    remote = options.tenant()
    if id is not None:
        job = remote.call("POST", f"/v1/dead-letters/{id}/replay", {"payload": arguments})
        options.record(job, f"{job['id']} is {job['state']}.")
        return
    body = {"payload": arguments, "per_second": per_second, "dry_run": dry_run}
    _act(remote, "replay", _narrowed(which, all), body, (yes, wait), options)


@app.command
def discard(
    id: str | None = None,
    *,
    all: bool = False,
    which: Filters = ALL,
    dry_run: bool = False,
    wait: bool = True,
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Take dead letters off the list: one by id, or all that match.

    Of many, it shows what would go, and asks.

    Parameters
    ----------
    id
        One dead letter. Without it, the filters say which.
    all
        Every dead letter; needed when no filter is given.
    dry_run
        Only count.
    wait
        Show progress until it is done; Ctrl-C aborts it.
    """
    remote = options.tenant()
    if id is not None:
        remote.call("DELETE", f"/v1/dead-letters/{id}")
        options.record({"id": id, "discarded": True}, "Discarded.")
        return
    _act(remote, "discard", _narrowed(which, all), {"dry_run": dry_run}, (yes, wait), options)


@app.command
def actions(*, options: Options = PLAIN) -> None:
    """Replays and discards of many, and how far each has come."""
    found = options.tenant().get("/v1/dead-letters/actions")
    options.rows(found, found["actions"], ACTIONS, "No actions.")


@app.command
def abort(id: str, *, options: Options = PLAIN) -> None:
    """Stop a replay or a discard; what is done stays done."""
    one = options.tenant().call("DELETE", f"/v1/dead-letters/actions/{id}")
    options.record(one, f"Aborted after {one['done']} of {one['matched']}.")


RESTRAINTS = (
    Column("what", "kind"),
    Column("type", "type"),
    Column("since", lambda one: age(one["since"])),
    Column("detail", "detail", "fold"),
)


def restraints(*, options: Options = PLAIN) -> None:
    """What holds failing jobs back: circuits of dependencies, job types in quarantine."""
    found = options.tenant().get("/v1/restraints")
    options.rows(found, restraints_of(found), RESTRAINTS, "Nothing is held back.")


def restraints_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Both kinds in one list."""
    circuits = [
        {
            "kind": "circuit",
            "type": one["type"],
            "since": one["opened_at"],
            "detail": f"{one['dependency']} is away; next try in {span(one['next_probe_seconds'])}",
        }
        for one in found["circuits"]
    ]
    quarantines = [
        {
            "kind": "quarantine",
            "type": one["type"],
            "since": one["since"],
            "detail": "it mostly fails; two tries a job",
        }
        for one in found["quarantines"]
    ]
    return circuits + quarantines


EVENTS = (
    Column("age", lambda one: age(one["at"])),
    Column("kind", "kind"),
    Column("detail", "detail", "fold"),
)


def events(*, kind: str | None = None, limit: int = 20, options: Options = PLAIN) -> None:
    """What you should hear of, newest first.

    Parameters
    ----------
    kind
        Only of this kind, such as quarantine_imposed.
    limit
        So many at most.
    """
    found = options.tenant().pages("/v1/events", "events", limit, kind=kind)
    options.rows({"events": found}, found, EVENTS, "No events.")


# -- helpers -------------------------------------------------------------------------------------


def _arguments(payload: Path) -> Any:
    try:
        return msgspec.json.decode(payload.read_bytes())
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"--payload {payload} is no JSON: {error}") from None


def _narrowed(which: Filters, all_: bool) -> dict[str, str | None]:
    query = which.query()
    if not all_ and not any(query.values()):  # one that is empty narrows nothing
        raise InvalidRequest("Say which: an id, a filter such as --type, or --all.")
    return query


def _act(
    remote: Remote,
    kind: str,
    query: dict[str, Any],
    body: dict[str, Any],
    said: tuple[bool, bool],
    options: Options,
) -> None:
    """Count, show and ask first; then begin, and follow it. `said`: --yes and --wait."""
    path, (yes, wait) = f"/v1/dead-letters/{kind}", said
    counted = remote.call("POST", path, {"dry_run": True}, query)
    count = f"{'' if counted['is_exact'] else 'more than '}{counted['matched']}"
    letters = f"{count} dead letter{'' if count == '1' else 's'}"
    if body["dry_run"]:
        options.record(counted, f"This would {kind} {letters}; nothing was done.")
        return
    if counted["matched"] and not yes:
        show_table(LETTERS, remote.get("/v1/dead-letters", **query, limit=EXAMPLES)["jobs"])
        agreed(f"This will {kind} {letters}.", yes=yes)
    _follow(remote, remote.call("POST", path, body, query), wait, options)


def _follow(remote: Remote, found: dict[str, Any], wait: bool, options: Options) -> None:
    """Show how far an action has come until it is over."""
    path = f"/v1/dead-letters/actions/{found['id']}"
    try:
        while wait and found["state"] == "running":
            time.sleep(LOOK_SECONDS)
            found = remote.get(path)
            if is_terminal() and options.form == "table":
                sys.stdout.write(f"{found['done']} of {found['matched']}\r")
                sys.stdout.flush()
    except KeyboardInterrupt:
        found = remote.call("DELETE", path)
    options.record(found, f"{found['kind']} {found['id']}: {found['state']}, {found['done']} done.")
    if found.get("error") and options.form == "table":
        say(f"The store refused it: {found['error']}")


def _error(error: dict[str, Any]) -> str:
    return ": ".join(str(error[key]) for key in ("type", "message") if error.get(key))
