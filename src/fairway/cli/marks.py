"""`fairway marks …`: deploys, incidents and notes beside graphs. Needs an operator's key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from cyclopts import App

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.moments import local, past
from fairway.cli.terminal.output import Column

app = App(name="marks", help="Deploys, incidents and notes beside graphs: look, add.")

PATH = "/v1/marks"
MARKS = (
    Column("at", lambda one: local(one["at"])),
    Column("kind", "kind"),
    Column("until", lambda one: local(one["until"]), "spare"),
    Column("what", "text", "fold"),
)


@app.default
@app.command(name=("ls", "list"))
def list_(*, since: str = "1d", options: Options = PLAIN) -> None:
    """Marks since a time, the oldest first.

    Parameters
    ----------
    since
        From then on: 2h (ago), yesterday, or a time.
    """
    moment = past(since, "since", datetime.now(UTC))
    found = options.operator().get(PATH, **{"from": moment})
    options.rows(found, found["items"], MARKS, "No marks.")


@app.command
def add(
    text: str,
    *,
    kind: Literal["note", "deploy", "incident"] = "note",
    options: Options = PLAIN,
) -> None:
    """Add a mark at this moment, for whoever looks at graphs later.

    Parameters
    ----------
    text
        What happened, in a few words.
    kind
        What it is.
    """
    made = options.operator().call("POST", PATH, {"text": text, "kind": kind})
    options.record(made, f"Marked: {made['text']}")
