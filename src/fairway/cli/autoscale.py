"""`fairway autoscale …`: how many workers pools should have, and why (operator)."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.moments import age, seconds, span
from fairway.cli.terminal.output import Column, Record
from fairway.core.errors import InvalidRequest

app = App(name="autoscale", help="How many workers pools should have, and why (operator).")

MODES = ("off", "dry_run", "on")
FIELDS = ("mode", "minimum_workers", "maximum_workers", "down_after_seconds")


def _override(one: Record) -> str:
    found = one["override"]
    return "–" if found is None else f"{found['workers']} by {found['by']}, {age(found['until'])}"


POOLS = (
    Column("pool", "pool"),
    Column("mode", "mode"),
    Column("workers", "workers"),
    Column("busy", "busy_workers"),
    Column("closed", "closed_workers", "spare"),
    Column("wanted", "wanted_workers"),
    Column("least", "minimum_workers"),
    Column("most", "maximum_workers"),
    Column("waits", lambda one: f"{one['backlog_slot_seconds']:.1f} slot-s"),
    Column("oldest", lambda one: span(one["oldest_runnable_age_seconds"])),
    Column("in use", lambda one: f"{one['utilisation'] * 100:.0f} %"),
    Column("override", _override, "spare"),
)
DECISIONS = (
    Column("age", lambda one: age(one["at"])),
    Column("pool", "pool"),
    Column("from", "from_workers"),
    Column("to", "to_workers"),
    Column("code", lambda one: one["code"] + (" (dry run)" if one["dry_run"] else "")),
    Column("why", "reason", "fold"),
)


@app.command(name=("ls", "list"))
def list_(*, options: Options = PLAIN) -> None:
    """Every pool: its workers, what waits for them, and how many there should be."""
    found = options.operator().get("/v1/autoscale")
    options.rows(found, found["pools"], POOLS, "No pools.")


@app.command
def decisions(*, pool: str | None = None, limit: int = 50, options: Options = PLAIN) -> None:
    """What was decided and from which numbers, newest first.

    Parameters
    ----------
    pool
        Only of this pool.
    limit
        So many at most.
    """
    found = options.operator().pages("/v1/autoscale/decisions", "items", limit, pool=pool)
    options.rows({"items": found}, found, DECISIONS, "No decisions yet.")


@app.command(name="set")
def set_(pool: str, *settings: str, options: Options = PLAIN) -> None:
    """Let the number of a pool's workers be decided, or not.

    Parameters
    ----------
    pool
        The pool.
    settings
        As field=value: mode=off, dry_run or on; minimum_workers=1 maximum_workers=20;
        down_after_seconds=300, or empty for what suits the pool. What is not named stays.
    """
    remote, where = options.operator(), f"/v1/autoscale/{quote(pool, safe='')}"
    before = remote.get(where)
    wanted = {name: before[name] for name in FIELDS} | parsed(settings)
    after = remote.call("PUT", where, wanted)
    options.record(after, lambda: _said(after))


@app.command
def override(
    pool: str,
    workers: int | None = None,
    *,
    length: Annotated[str, Parameter(name="--for")] = "1h",
    end: Annotated[bool, Parameter(negative="")] = False,
    options: Options = PLAIN,
) -> None:
    """Say how many workers a pool should have, whatever waits, for a while.

    Parameters
    ----------
    pool
        The pool.
    workers
        How many.
    length
        For how long: 30m, 2h, 1d. Then it ends by itself.
    end
        End the override that is in force.
    """
    remote, where = options.operator(), f"/v1/autoscale/{quote(pool, safe='')}/override"
    if end:
        after = remote.call("DELETE", where)
    elif workers is None:
        raise InvalidRequest("How many workers? fairway autoscale override short 10.")
    else:
        wish = {"workers": workers, "for_seconds": seconds(length, "--for")}
        after = remote.call("PUT", where, wish)
    options.record(after, lambda: _said(after))


def parsed(settings: tuple[str, ...]) -> dict[str, Any]:
    """`("mode=on", "maximum_workers=20")` as the fields of a request."""
    found: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or name not in FIELDS:
            raise InvalidRequest(
                f"{text!r}: write it as field=value; the fields are {', '.join(FIELDS)}."
            )
        found[name] = _mode(value) if name == "mode" else _number(name, value)
    return found


def _mode(value: str) -> str:
    if value not in MODES:
        raise InvalidRequest(f"mode is {', '.join(MODES[:-1])} or {MODES[-1]}, not {value!r}.")
    return value


def _number(name: str, value: str) -> int | float | None:
    if name == "down_after_seconds":
        return seconds(value, name) if value else None
    if not value.isdigit():
        raise InvalidRequest(f"{name} must be a whole number from 0 on, not {value!r}.")
    return int(value)


def _said(one: Record) -> str:
    where = f"{one['pool']}: {one['mode']}, {one['minimum_workers']} to {one['maximum_workers']}"
    said = f"{where} workers; {one['workers']} there, {one['wanted_workers']} wanted"
    return f"{said}; override {_override(one)}" if one["override"] else f"{said}."
