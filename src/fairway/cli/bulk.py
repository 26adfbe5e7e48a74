"""`fairway bulk …`: acts on many jobs, how far each has come, and stopping one.

What begins one (`jobs cancel-all`, `dead replay`, `dead discard`) counts, shows and asks by this.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from cyclopts import App

from fairway.cli.remote import MINE, Options, Remote, Whose
from fairway.cli.terminal.moments import age
from fairway.cli.terminal.output import Column, Record, agreed, is_terminal, say

app = App(name="bulk", help="Acts on many jobs: how far each has come, and stopping one.")

PATH = "/v1/bulk-actions"
LOOK_SECONDS = 0.5
ACTIONS = (
    Column("id", "id"),
    Column("act", "act"),
    Column("state", "state"),
    Column("done", "done"),
    Column("asked to stop", "asked_to_stop", "spare"),
    Column("of", "matched"),
    Column("skipped", "skipped", "spare"),
    Column("failed", "failed"),
    Column("which", "filter", "fold"),
    Column("began", lambda one: age(one["created_at"]), "spare"),
)


@app.command(name=("ls", "list"))
def list_(*, options: Whose = MINE) -> None:
    """The newest acts on many jobs, and how far each has come."""
    found = options.tenant().get(PATH)
    options.rows(found, found["actions"], ACTIONS, "No bulk actions.")


@app.command
def show(id: str, *, options: Whose = MINE) -> None:
    """How far one has come."""
    one = options.tenant().get(f"{PATH}/{id}")
    options.record(one, _told(one))


@app.command
def abort(id: str, *, options: Whose = MINE) -> None:
    """Stop one; what is done stays done."""
    one = options.tenant().call("POST", f"{PATH}/{id}/abort", {})
    options.record(one, _told(one))


class Wish(NamedTuple):
    """What is asked for, and how it is said."""

    act: str
    which: dict[str, Any]  # filters; what is None does not narrow
    things: str  # job | dead letter
    examples: Callable[[], None]  # shows some of what it would meet
    terms: dict[str, Any]  # the rest of the request
    is_all: bool = False
    dry_run: bool = False
    yes: bool = False
    wait: bool = True


def act_on_many(remote: Remote, wish: Wish, options: Options) -> None:
    """Count, show and ask first; then begin, and follow it."""
    given = {name: value for name, value in wish.which.items() if value is not None}
    body = {"act": wish.act, "filter": given, "all": wish.is_all}
    counted = remote.call("POST", PATH, body | {"dry_run": True})
    things = _counted(counted, wish.things)
    if wish.dry_run:
        options.record(counted, f"This would {wish.act} {things}; nothing was done.")
        return
    if (counted["matched"] or not counted["is_exact"]) and not wish.yes:
        wish.examples()
        agreed(f"This will {wish.act} {things}.", yes=wish.yes)
    _follow(remote, remote.call("POST", PATH, body | wish.terms), wish.wait, options)


def _follow(remote: Remote, found: dict[str, Any], wait: bool, options: Options) -> None:
    """Show how far it has come until it is over; Ctrl-C aborts it."""
    path = f"{PATH}/{found['id']}"
    try:
        while wait and found["state"] == "running":
            time.sleep(LOOK_SECONDS)
            found = remote.get(path)
            if is_terminal() and options.form == "table":
                sys.stdout.write(f"{found['done']} of {found['matched']}\r")
                sys.stdout.flush()
    except KeyboardInterrupt:
        found = remote.call("POST", f"{path}/abort", {})
    options.record(found, _told(found))
    if found.get("error") and options.form == "table":
        say(f"The store refused some of it: {found['error']}")


def _counted(found: Record, things: str) -> str:
    """`at least`: there are more than anybody looked through."""
    count = f"{'' if found['is_exact'] else 'at least '}{found['matched']}"
    return f"{count} {things}{'' if count == '1' else 's'}"


def _told(one: Record) -> str:
    parts = ("asked_to_stop", "skipped", "failed")
    rest = "".join(f", {one[name]} {name.replace('_', ' ')}" for name in parts if one[name])
    return (
        f"{one['act']} {one['id']}: {one['state']}, {one['done']} of {one['matched']} done{rest}."
    )
