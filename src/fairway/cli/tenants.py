"""`fairway tenants …`, `tiers`, `pause`, `resume`, `limits`: who gets what, and what must wait."""

from __future__ import annotations

from typing import Any

from cyclopts import App

from fairway.cli.remote import Remote, screen, show_json, table
from fairway.core.errors import InvalidRequest

app = App(name="tenants", help="Add and change tenants (operator).")

NUMBERS = ("weight", "cap", "rate_per_second", "burst", "depth_limit")


@app.command
def add(name: str, *settings: str) -> None:
    """Add a tenant and print its first key.

    Parameters
    ----------
    settings
        As field=value: tier=pro weight=50 rate_per_second=500 reserved.short=10
    """
    show_json(Remote("operator").call("POST", "/v1/tenants", {"name": name} | parsed(settings)))


@app.command
def show(name: str) -> None:
    """A tenant with the values in force."""
    show_json(Remote("operator").get(f"/v1/tenants/{name}"))


@app.command(name="set")
def set_(name: str, *settings: str) -> None:
    """Change a tenant; holds at once, also for what is queued.

    Parameters
    ----------
    settings
        As field=value; an empty value (weight=) takes the tier's again.
    """
    if not settings:
        raise InvalidRequest("Say what to change, as in `fairway tenants set acme tier=pro`.")
    show_json(Remote("operator").call("PATCH", f"/v1/tenants/{name}", parsed(settings)))


def tiers() -> None:
    """All tiers and what their tenants are entitled to."""
    found = Remote("operator").get("/v1/tiers")["tiers"]
    names = ("name", "weight", "floor_per_mille", "cap", "rate_per_second", "burst", "depth_limit")
    rows = [["–" if tier[name] is None else str(tier[name]) for name in names] for tier in found]
    screen.print(table(names, rows))


def limits() -> None:
    """What this tenant may do, how much is used, and what was refused."""
    show_json(Remote("tenant").get("/v1/limits"))


def pause(*what: str) -> None:
    """Keep jobs from starting; what runs, runs on.

    Parameters
    ----------
    what
        As field=value: tenant=acme, type=email.send, pool=long, or several of them.
    """
    Remote("operator").call("POST", "/v1/pauses", parsed(what))
    screen.print(f"Paused: {' '.join(what)}")


def resume(*what: str) -> None:
    """End a pause: name what was named when it was made."""
    Remote("operator").call("DELETE", "/v1/pauses", query=parsed(what))
    screen.print(f"Runs again: {' '.join(what)}")


def parsed(settings: tuple[str, ...]) -> dict[str, Any]:
    """`("weight=5", "reserved.short=2")` as the fields of a request."""
    found: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidRequest(f"{text!r}: write it as field=value.")
        if name.startswith("reserved."):
            found.setdefault("reserved", {})[name.removeprefix("reserved.")] = _number(name, value)
        elif name in NUMBERS:
            found[name] = _number(name, value) if value else None
        else:
            found[name] = value
    return found


def _number(name: str, value: str) -> int:
    if not value.isdigit():
        raise InvalidRequest(f"{name} must be a whole number, not {value!r}.")
    return int(value)
