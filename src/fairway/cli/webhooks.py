"""`fairway webhooks …`: events sent to receivers of your own. Needs a tenant's key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from cyclopts import App

from fairway.cli.remote import MINE, Whose
from fairway.cli.terminal.moments import age, past, seconds
from fairway.cli.terminal.output import Column
from fairway.core.errors import InvalidRequest

app = App(name="webhooks", help="Events sent to receivers of your own: make, try out, replay.")

PATH = "/v1/webhooks"

WEBHOOKS = (
    Column("id", "id"),
    Column("url", "url", "fold"),
    Column("kinds", lambda one: ", ".join(one["kinds"]) or "all"),
    Column("state", lambda one: _state(one)),
    Column("description", "description", "spare"),
)
DELIVERIES = (
    Column("id", "id"),
    Column("kind", "kind"),
    Column("state", "state"),
    Column("attempts", "attempts"),
    Column("age", lambda one: age(one["created_at"])),
    Column("status", "last_status"),
    Column("error", "last_error", "spare"),
    Column("body", "body", "spare"),
)


@app.command(name=("ls", "list"))
def list_(*, options: Whose = MINE) -> None:
    """All webhooks."""
    found = options.tenant().get(PATH)
    options.rows(found, found["webhooks"], WEBHOOKS, "No webhooks.")


@app.command
def add(url: str, *, kinds: str = "", description: str = "", options: Whose = MINE) -> None:
    """Send events to an address from now on; prints its id and its secret, once.

    Parameters
    ----------
    url
        Where to: https, and an address of the public internet.
    kinds
        Which events, with commas between: job.dead,circuit.* (default: all).
    description
        For people.
    """
    body = {"url": url, "kinds": _names(kinds), "description": description}
    made = options.tenant().call("POST", PATH, body)
    lines = [made["id"], f"secret: {made['secret']}", "It is not shown again."]
    options.record(made, "\n".join(lines))


@app.command
def show(id: str, *, options: Whose = MINE) -> None:
    """One webhook, whole but for its secret."""
    options.record(options.tenant().get(f"{PATH}/{id}"))


@app.command
def change(
    id: str,
    *,
    url: str | None = None,
    kinds: str | None = None,
    description: str | None = None,
    enabled: bool | None = None,
    options: Whose = MINE,
) -> None:
    """Change what is given; switch it off or on.

    Parameters
    ----------
    id
        The webhook.
    url
        Where to.
    kinds
        Which events, with commas between.
    description
        For people.
    enabled
        Whether anything is sent.
    """
    given: dict[str, Any] = {"url": url, "description": description, "enabled": enabled}
    given["kinds"] = None if kinds is None else _names(kinds)
    body = {name: value for name, value in given.items() if value is not None}
    options.record(options.tenant().call("PATCH", f"{PATH}/{id}", body))


@app.command(name=("rm", "delete"))
def delete(id: str, *, options: Whose = MINE) -> None:
    """Delete a webhook, with what was still on its way."""
    options.tenant().call("DELETE", f"{PATH}/{id}")
    options.record({"id": id, "deleted": True}, f"Deleted: {id}")


@app.command
def rotate(id: str, *, overlap: str = "1d", options: Whose = MINE) -> None:
    """Replace the secret; prints the new one, once.

    Parameters
    ----------
    id
        The webhook.
    overlap
        So long the secret before signs as well, as in 24h; 0s: it is worth nothing from now on.
    """
    body = {"overlap_seconds": round(seconds(overlap, "--overlap") or 0)}
    made = options.tenant().call("POST", f"{PATH}/{id}/rotate", body)
    options.record(made, f"secret: {made['secret']}\nIt is not shown again.")


@app.command(name="test")
def try_out(id: str, *, options: Whose = MINE) -> None:
    """Send an event webhook.test; prints the delivery's id."""
    sent = options.tenant().call("POST", f"{PATH}/{id}/test")
    options.record(sent, sent["id"])


@app.command
def deliveries(
    id: str,
    *,
    state: Literal["waiting", "delivered", "failed"] | None = None,
    limit: int = 20,
    options: Whose = MINE,
) -> None:
    """What was sent, what waits for another try, what was given up; newest first.

    Parameters
    ----------
    id
        The webhook.
    state
        Only of this state.
    limit
        So many at most.
    """
    path = f"{PATH}/{id}/deliveries"
    found = options.tenant().pages(path, "deliveries", limit, state=state)
    options.rows({"deliveries": found}, found, DELIVERIES, "No deliveries.")


@app.command
def replay(
    id: str,
    delivery: str | None = None,
    *,
    since: str | None = None,
    all: bool = False,
    options: Whose = MINE,
) -> None:
    """Send a delivery again, or those that were given up since a time.

    Parameters
    ----------
    id
        The webhook.
    delivery
        The delivery's id.
    since
        From then on: 2h (ago), yesterday, or a time as in 2026-01-01T00:00Z.
    all
        With --since: all events that your log still has, not those that were given up alone.
    """
    if (delivery is None) == (since is None):
        raise InvalidRequest("Name a delivery, or a time with --since.")
    if delivery is not None:
        sent = options.tenant().call("POST", f"{PATH}/{id}/deliveries/{delivery}/replay")
        options.record(sent, f"On its way: {sent['id']}")
        return
    moment = past(since, "since", datetime.now(UTC))
    body = {"since": moment, "which": "all" if all else "failed"}
    found = options.tenant().call("POST", f"{PATH}/{id}/replay", body)
    count = "All of the log since then" if found["replayed"] is None else found["replayed"]
    more = " There are more: run this again." if found["is_more"] else ""
    options.record(found, f"On their way: {count}.{more}")


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _state(one: Any) -> str:
    if not one["enabled"]:
        return "disabled" if one["disabled_because"] else "off"
    return "failing" if one["failing_since"] else "on"
