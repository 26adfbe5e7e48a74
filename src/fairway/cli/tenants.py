"""`fairway tenants …`, `tiers`, `limits`: who gets what."""

from __future__ import annotations

from typing import Any

from cyclopts import App

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.output import Column, fields_of
from fairway.core.errors import InvalidRequest

app = App(name="tenants", help="List, add and change tenants (operator).")

NUMBERS = ("weight", "cap", "rate_per_second", "burst", "depth_limit")
FIELDS = ("tier", *NUMBERS, "reserved")
LIST_MAX = 100_000
TENANTS = (
    Column("name", "name"),
    Column("tier", "tier"),
    Column("weight", "weight"),
    Column("rate/s", "rate_per_second"),
    Column("burst", "burst", "spare"),
    Column("depth limit", "depth_limit"),
    Column("cap", "cap", "spare"),
    Column("reserved", "reserved", "spare"),
)
TIERS = (
    Column("name", "name"),
    Column("weight", "weight"),
    Column("floor ‰", "floor_per_mille"),
    Column("cap", "cap"),
    Column("rate/s", "rate_per_second"),
    Column("burst", "burst"),
    Column("depth limit", "depth_limit"),
    Column("group", "group", "spare"),
)


@app.command(name=("ls", "list"))
def list_(*, limit: int = 1000, options: Options = PLAIN) -> None:
    """All tenants by name, with the values in force.

    Parameters
    ----------
    limit
        So many at most.
    """
    if not 1 <= limit <= LIST_MAX:
        raise InvalidRequest(f"--limit is a number from 1 to {LIST_MAX}.")
    found = options.operator().pages("/v1/tenants", "tenants", limit)
    options.rows({"tenants": found}, found, TENANTS, "No tenants: `fairway tenants add` makes one.")


@app.command
def add(name: str, *settings: str, options: Options = PLAIN) -> None:
    """Add a tenant and print its first key.

    Parameters
    ----------
    settings
        As field=value: tier=pro weight=50 rate_per_second=500 reserved.short=10
    """
    wanted = {"name": name} | parsed(settings, FIELDS)
    added = options.operator().call("POST", "/v1/tenants", wanted)

    def text() -> str:
        facts = "\n".join(fields_of(added))
        return f"{facts}\n\nThe key is shown this once: keep it, or make another."

    options.record(added, text)


@app.command
def show(name: str, *, options: Options = PLAIN) -> None:
    """A tenant with the values in force."""
    options.record(options.operator().get(f"/v1/tenants/{name}"))


@app.command(name="set")
def set_(name: str, *settings: str, options: Options = PLAIN) -> None:
    """Change a tenant; holds at once, also for what is queued.

    Parameters
    ----------
    settings
        As field=value; an empty value (weight=) takes the tier's again.
    """
    if not settings:
        raise InvalidRequest("Say what to change, as in `fairway tenants set acme tier=pro`.")
    options.record(
        options.operator().call("PATCH", f"/v1/tenants/{name}", parsed(settings, FIELDS))
    )


def tiers(*, options: Options = PLAIN) -> None:
    """All tiers and what their tenants are entitled to."""
    found = options.operator().get("/v1/tiers")
    options.rows(found, found["tiers"], TIERS, "No tiers.")


def limits(*, options: Options = PLAIN) -> None:
    """What this tenant may do, how much is used, and what was refused."""
    options.record(options.tenant().get("/v1/limits"))


def parsed(settings: tuple[str, ...], known: tuple[str, ...]) -> dict[str, Any]:
    """`("weight=5", "reserved.short=2")` as the fields of a request, which has those in `known`."""
    found: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidRequest(
                f"{text!r}: write it as field=value; the fields are {', '.join(known)}."
            )
        if name.partition(".")[0] not in known:
            raise InvalidRequest(f"There is no field {name!r}; there are {', '.join(known)}.")
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
