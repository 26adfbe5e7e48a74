"""`fairway alarms …`: what is wrong, what was, where it is sent. Needs an operator's key."""

from __future__ import annotations

from datetime import datetime

from cyclopts import App

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.moments import age, span
from fairway.cli.terminal.output import Column, Record
from fairway.cli.webhooks import DELIVERIES, WEBHOOKS

app = App(name="alarms", help="What is wrong, what was, and where alarms are sent.")
webhooks = App(name="webhooks", help="Receivers that alarms are sent to.")
app.command(webhooks)

PATH = "/v1/alarms/webhooks"
RAISED = (
    Column("severity", "severity"),
    Column("name", "name"),
    Column("about", "subject"),
    Column("since", lambda one: age(one["since"])),
    Column("what was seen", "text", "fold"),
    Column("what helps", "runbook", "fold"),
)
HISTORY = (
    Column("age", lambda one: age(one["raised_at"])),
    Column("severity", "severity"),
    Column("name", "name"),
    Column("about", "subject"),
    Column("lasted", lambda one: _lasted(one), "spare"),
    Column("what was seen", "text", "fold"),
)


@app.default
def raised(*, options: Options = PLAIN) -> None:
    """Alarms that are raised, the worst first, with what helps."""
    found = options.operator().get("/v1/alarms")
    options.rows(found, found["items"], RAISED, "No alarms.")


@app.command
def history(*, limit: int = 50, options: Options = PLAIN) -> None:
    """Alarms that were raised, newest first, with those that still are.

    Parameters
    ----------
    limit
        So many at most.
    """
    found = options.operator().pages("/v1/alarms/history", "items", limit)
    options.rows({"items": found}, found, HISTORY, "No alarms yet.")


@webhooks.command(name=("ls", "list"))
def list_(*, options: Options = PLAIN) -> None:
    """Where alarms are sent."""
    found = options.operator().get(PATH)
    options.rows(found, found["webhooks"], WEBHOOKS, "Alarms are sent nowhere.")


@webhooks.command
def add(url: str, *, description: str = "", options: Options = PLAIN) -> None:
    """Send alarms to an address from now on; prints its id and its secret, once.

    Parameters
    ----------
    url
        Where to: https, and an address of the public internet.
    description
        For people.
    """
    body = {"url": url, "description": description}
    made = options.operator().call("POST", PATH, body)
    lines = [made["id"], f"secret: {made['secret']}", "It is not shown again."]
    options.record(made, "\n".join(lines))


@webhooks.command
def enable(id: str, *, options: Options = PLAIN) -> None:
    """Send alarms there again, after it was switched off: those from now on."""
    found = options.operator().call("PATCH", f"{PATH}/{id}", {"enabled": True})
    options.record(found, f"Enabled: {id}")


@webhooks.command(name=("rm", "delete"))
def delete(id: str, *, options: Options = PLAIN) -> None:
    """Send alarms there no more, nor what was still on its way."""
    options.operator().call("DELETE", f"{PATH}/{id}")
    options.record({"id": id, "deleted": True}, f"Deleted: {id}")


@webhooks.command(name="test")
def try_out(id: str, *, options: Options = PLAIN) -> None:
    """Send a webhook.test; prints the delivery's id."""
    sent = options.operator().call("POST", f"{PATH}/{id}/test")
    options.record(sent, sent["id"])


@webhooks.command
def deliveries(id: str, *, limit: int = 20, options: Options = PLAIN) -> None:
    """What was sent, what waits for another try, what was given up; newest first.

    Parameters
    ----------
    id
        The webhook.
    limit
        So many at most.
    """
    found = options.operator().pages(f"{PATH}/{id}/deliveries", "deliveries", limit)
    options.rows({"deliveries": found}, found, DELIVERIES, "No deliveries.")


def _lasted(one: Record) -> str:
    if one["ended_at"] is None:
        return "still"
    began, ended = (datetime.fromisoformat(one[name]) for name in ("raised_at", "ended_at"))
    return span((ended - began).total_seconds())
