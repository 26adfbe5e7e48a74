"""`fairway dead …`: look at dead letters, replay or discard them; what holds failing jobs back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from fairway.cli.bulk import Wish, act_on_many
from fairway.cli.remote import MINE, Remote, Whose
from fairway.cli.terminal.job_text import told
from fairway.cli.terminal.list_filters import Since, Until, check_limit, query_of
from fairway.cli.terminal.moments import age, span
from fairway.cli.terminal.output import Column, Yes, show_table
from fairway.core.errors import InvalidRequest

app = App(name="dead", help="Look at dead letters, replay or discard them.")

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


@Parameter(name="*")
@dataclass(frozen=True)
class Filters:
    """Which dead letters: what is not given does not narrow."""

    type: Annotated[str | None, Parameter(help="A job type.")] = None
    pool: Annotated[str | None, Parameter(help="A pool.")] = None
    tag: Annotated[str | None, Parameter(help="A tag.")] = None
    fingerprint: Annotated[
        str | None, Parameter(help="A cause, as `fairway dead groups` shows it.")
    ] = None
    since: Since = None
    until: Until = None


ALL = Filters()


@app.command(name=("ls", "list"))
def list_(*, which: Filters = ALL, limit: int = 20, options: Whose = MINE) -> None:
    """The newest dead letters that these filters match.

    Parameters
    ----------
    limit
        So many at most.
    """
    check_limit(limit)
    found = options.tenant().pages("/v1/dead-letters", "jobs", limit, **query_of(which))
    options.rows({"jobs": found}, found, LETTERS, "No dead letters.")


@app.command
def groups(*, options: Whose = MINE) -> None:
    """Dead letters by cause, the largest group first."""
    found = options.tenant().get("/v1/dead-letters/groups")
    options.rows(found, found["groups"], GROUPS, "No dead letters.")


@app.command
def show(id: str, *, options: Whose = MINE) -> None:
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
    options: Whose = MINE,
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
    terms = {"payload": arguments, "per_second": per_second}
    wish = _wish(remote, "replay", which, all, terms)
    act_on_many(remote, wish._replace(dry_run=dry_run, yes=yes, wait=wait), options)


@app.command
def discard(
    id: str | None = None,
    *,
    all: bool = False,
    which: Filters = ALL,
    dry_run: bool = False,
    wait: bool = True,
    yes: Yes = False,
    options: Whose = MINE,
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
    wish = _wish(remote, "discard", which, all, {})
    act_on_many(remote, wish._replace(dry_run=dry_run, yes=yes, wait=wait), options)


RESTRAINTS = (
    Column("what", "kind"),
    Column("type", "type"),
    Column("since", lambda one: age(one["since"])),
    Column("detail", "detail", "fold"),
)


def restraints(*, options: Whose = MINE) -> None:
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


# -- helpers -------------------------------------------------------------------------------------


def _arguments(payload: Path) -> Any:
    try:
        return msgspec.json.decode(payload.read_bytes())
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"--payload {payload} is no JSON: {error}") from None


def _narrowed(which: Filters, all_: bool) -> dict[str, str | None]:
    query = query_of(which)
    if not all_ and not any(query.values()):  # one that is empty narrows nothing
        raise InvalidRequest("Say which: an id, a filter such as --type, or --all.")
    return query


def _wish(remote: Remote, act: str, which: Filters, all_: bool, terms: dict[str, Any]) -> Wish:
    query = _narrowed(which, all_)

    def examples() -> None:
        show_table(LETTERS, remote.get("/v1/dead-letters", **query, limit=EXAMPLES)["jobs"])

    return Wish(act, query, "dead letter", examples, terms, is_all=all_)


def _error(error: dict[str, Any]) -> str:
    return ": ".join(str(error[key]) for key in ("type", "message") if error.get(key))
