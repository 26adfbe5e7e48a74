"""`fairway region …`: who is there, whose home is where, failover and failback (operator)."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import quote

from cyclopts import App

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.output import Column, Record, Yes, agreed

app = App(name="region", help="Several regions: homes, failover and failback (operator).")


def _state(one: Record) -> str:
    if one["is_here"]:
        return "here"
    return "answers" if one["is_reachable"] else "no answer"


def _latency(one: Record) -> str:
    return "–" if one["latency_ms"] is None else f"{one['latency_ms']:.1f} ms"


def _held(one: Record) -> str:
    """Known of the region that answers alone."""
    if "held" not in one:
        return "–"
    doubt = one["held_in_doubt"]
    return f"{one['held']}, {doubt} in doubt" if doubt else str(one["held"])


def _conflicts(one: Record) -> str:
    return str(one.get("conflicts", "–"))


COLUMNS = (
    Column("region", "name"),
    Column("state", _state),
    Column("directory", lambda one: "yes" if one["is_directory"] else ""),
    Column("tenants", "tenants"),
    Column("term", lambda one: "–" if one["directory_term"] is None else one["directory_term"]),
    Column("latency", _latency),
    Column("held", _held),
    Column("conflicts", _conflicts),
    Column("addresses", lambda one: ", ".join(one["urls"]), "fold"),
)


@app.command(name=("ls", "list"))
def list_(*, options: Options = PLAIN) -> None:
    """Every region, as the one that answers sees it; and what is held there for others."""
    found = options.operator().get("/v1/regions")
    here = {name: found[name] for name in ("held", "held_in_doubt", "conflicts")}
    rows = [one | (here if one["is_here"] else {}) for one in found["regions"]]
    options.rows(found, rows, COLUMNS, "No regions.")


@app.command(name="set-home")
def set_home(tenant: str, region: str, *, options: Options = PLAIN) -> None:
    """Move a tenant to another region, with what waits. Both must be there.

    Parameters
    ----------
    tenant
        The tenant's name.
    region
        Where it is to be at home.
    """
    where = "/".join(("/v1/tenants", quote(tenant, safe=""), "home"))
    done = options.operator().call("PUT", where, {"region": region})
    options.record(done, lambda: f"{tenant} is at home in {done['region']} (term {done['term']}).")


@app.command
def failover(source: str, *, to: str, yes: Yes = False, options: Options = PLAIN) -> None:
    """Make another region the home of all tenants of a region that is lost.

    Parameters
    ----------
    source
        The region that is lost. Make sure that its servers do not run.
    to
        The region that takes over; ask one of its servers (--url).
    """
    remote = options.operator()
    if any(_is_there(one) for one in remote.get("/v1/regions")["regions"] if one["name"] == source):
        sys.stderr.write(
            f"fairway: {source} answers, so it is not lost. What waits there is handed over only"
            " once it has heard of this; jobs that it runs meanwhile end there.\n"
        )
    agreed(f"All tenants of {source} will be at home in {to}.", yes=yes)
    where = f"/v1/regions/{quote(source, safe='')}/failover"
    done = remote.call("POST", where, {"to": to})
    options.record(done, lambda: _said(done))


@app.command
def failback(region: str, *, yes: Yes = False, options: Options = PLAIN) -> None:
    """Move tenants back to a region that they were taken from by a failover.

    Parameters
    ----------
    region
        The region, which must be there again.
    """
    agreed(f"The tenants that a failover took from {region} will be at home there again.", yes=yes)
    done = options.operator().call("POST", f"/v1/regions/{quote(region, safe='')}/failback", {})
    options.record(done, lambda: _said(done))


def _is_there(one: Record) -> bool:
    return bool(one["is_here"] or one["is_reachable"])


def _said(done: dict[str, Any]) -> str:
    return (
        f"{done['tenants']} tenants were moved to {done['target']}; the directory is"
        f" {done['directory']} (term {done['directory_term']})."
    )
