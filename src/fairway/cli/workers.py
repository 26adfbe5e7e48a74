"""`fairway worker ls` and `drain`: what an operator asks about workers, and of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.moments import span
from fairway.cli.terminal.output import Column, Record


def _busy(one: Record) -> str:
    return ", ".join(
        f"{pool} {one['running'].get(pool, 0)}/{n}" for pool, n in one["slots"].items()
    )


def _state(one: Record) -> str:
    if one["draining"]:
        return "draining"
    if one.get("closed_seconds") is not None:
        return f"closed {span(one['closed_seconds'])}"
    return "silent" if one.get("silent") else "ok"


def _limits(one: Record) -> str:
    return "; ".join(f"{limit}: {means}" for limit, means in one["limits"].items())


COLUMNS = (
    Column("name", "name"),
    Column("life", "life"),
    Column("state", _state),
    Column("running / slots", _busy, "fold"),
    Column("last heard", lambda one: span(one["silent_seconds"]), "spare"),
    Column("tenant", lambda one: one["tenant"] or "all", "spare"),
    Column("build", "build", "spare"),
)
WITH_LIMITS = (*COLUMNS[:2], Column("limits are held by", _limits, "fold"))


def ls(*, limits: bool = False, options: Options = PLAIN) -> None:
    """List the workers that the platform hears. Needs the operator's key.

    Parameters
    ----------
    limits
        Show what holds jobs to their limits on each machine, instead.
    """
    found = options.operator().get("/v1/workers")
    columns = WITH_LIMITS if limits else COLUMNS
    options.rows(found, found["workers"], columns, "No workers: start one with `fairway worker`.")


def drain(name: str, *, options: Options = PLAIN) -> None:
    """Ask a worker to hand back or finish what it runs, and to end. Needs the operator's key.

    Parameters
    ----------
    name
        The worker's name, or one life of it, as `fairway worker ls` shows it.
    """
    asked = options.operator().call("POST", f"/v1/workers/{quote(name, safe='')}/drain")
    options.record(asked, lambda: "\n".join(map(_asked, asked["workers"])))


def _asked(one: dict[str, Any]) -> str:
    running = sum(one["running"].values())
    return f"{one['name']} ({one['life']}) was asked to drain; it runs {running} jobs."
