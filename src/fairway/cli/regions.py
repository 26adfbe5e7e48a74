"""`fairway region …`: who is there, whose home is where, failover and failback (operator)."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options, Remote
from fairway.cli.terminal.job_text import counted
from fairway.cli.terminal.output import Column, Record, Yes, agreed, say
from fairway.core.errors import InvalidRequest
from fairway.core.insight.spans import span
from fairway.core.regions.unlike import REFUSES

app = App(name="region", help="Several regions: homes, failover and failback (operator).")

LAG_TOLD_SECONDS = 5.0  # a copy of the directory that is younger is as it should be


ASK_AGAIN_SECONDS = 1.0
STANDS_STILL_TIMES = 10  # as often the same was heard: then it is said what may help

Force = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Do not wait until the region has handed over what it had: of two jobs with one"
        " Idempotency-Key that both regions accepted, both may run.",
    ),
]


def _state(one: Record) -> str:
    if one["is_here"]:
        return "here"
    if one["is_reachable"]:
        return "answers"
    trouble = one.get("trouble")
    if trouble == REFUSES:
        return "refuses our secret"
    return "set up otherwise" if trouble else "no answer"


def _latency(one: Record) -> str:
    return "–" if one["latency_ms"] is None else f"{one['latency_ms']:.1f} ms"


COLUMNS = (
    Column("region", "name"),
    Column("state", _state),
    Column("directory", lambda one: "yes" if one["is_directory"] else ""),
    Column("tenants", "tenants"),
    Column("term", lambda one: "–" if one["directory_term"] is None else one["directory_term"]),
    Column("latency", _latency),
    Column("addresses", lambda one: ", ".join(one["urls"]), "fold"),
)


@app.command(name=("ls", "list"))
def list_(*, options: Options = PLAIN) -> None:
    """Every region, as the one that answers sees it; and what is held there for others."""
    found = options.operator().get("/v1/regions")
    here = {name: found[name] for name in ("held", "held_in_doubt", "conflicts")}
    rows = [one | (here if one["is_here"] else {}) for one in found["regions"]]
    options.rows(found, rows, COLUMNS, "No regions.")
    if options.form == "table":
        say("\n".join(("", *_known_here(found))))


def _known_here(found: Record) -> list[str]:
    """Of the region that answers alone: nobody else can tell."""
    here, held, doubt = found["here"], found["held"], found["held_in_doubt"]
    jobs = counted(held, "job is", "jobs are") if held else "No job is"
    told = [f"{jobs} held in {here} for tenants of other regions."]
    told += [f"{one['name']} {one['trouble']}." for one in found["regions"] if one.get("trouble")]
    if doubt:
        are = "of them is" if doubt == 1 else "of them are"
        told.append(f"{doubt} {are} in doubt: only the region that was asked knows if it has them.")
    if found["conflicts"]:
        tenants = counted(found["conflicts"], "tenant", "tenants")
        told.append(
            f"{tenants} of the directory cannot be known in {here}: names or numbers clash."
        )
    if found["lag_seconds"] >= LAG_TOLD_SECONDS:
        told.append(f"{here} heard of the directory {span(found['lag_seconds'])} ago.")
    return told


@app.command(name="set-home")
def set_home(
    tenant: str, region: str, *, force: Force = False, yes: Yes = False, options: Options = PLAIN
) -> None:
    """Move a tenant to another region, with what waits. That one must be there. Asks before.

    What waits in a region that is away follows when it is back.

    Parameters
    ----------
    tenant
        The tenant's name.
    region
        Where it is to be at home.
    """
    remote = options.operator()
    where = "/".join(("/v1/tenants", quote(tenant, safe=""), "home"))
    if not yes and region in _names(remote):  # else it is refused, and nobody is asked
        before = remote.get(where)["region"]
        agreed(f"{tenant} is at home in {before}: it will be at home in {region}.", yes=yes)
    done = remote.call("PUT", where, {"region": region} | _asked(force))
    options.record(done, lambda: f"{tenant} is at home in {done['region']} (term {done['term']}).")


@app.command
def failover(
    source: str,
    *,
    to: str,
    force: Annotated[bool, Parameter(negative=())] = False,
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Make another region the home of all tenants of a region that is lost. Asks before.

    Parameters
    ----------
    source
        The region that is lost. Make sure that its servers do not run.
    to
        The region that takes over; ask one of its servers (--url).
    force
        Even if the region answers: without this it is refused then. What waits there is handed over
        only once it has heard of this; jobs that it runs meanwhile end there.
    """
    remote = options.operator()
    known = remote.get("/v1/regions")
    regions = {one["name"]: one for one in known["regions"]}
    if source != to and {source, to} <= regions.keys():  # else it is refused, and nobody is asked
        lost = regions[source]
        if lost["is_here"] or lost["is_reachable"]:
            _allow_though_it_answers(source, force)
        whose = f"Tenants at home in {source} ({_known_of(lost, known)})"
        agreed(f"{whose} will be at home in {to}.", yes=yes)
    where = f"/v1/regions/{quote(source, safe='')}/failover"
    done = remote.call("POST", where, {"to": to} | _asked(force))
    options.record(done, lambda: _said(done))


@app.command
def failback(
    region: str, *, force: Force = False, yes: Yes = False, options: Options = PLAIN
) -> None:
    """Move tenants back to a region that they were taken from by a failover.

    Each goes when the region has handed over what it had of it; this waits until all are back.

    Parameters
    ----------
    region
        The region, which must be there again.
    """
    remote, where = options.operator(), f"/v1/regions/{quote(region, safe='')}/failback"
    if not yes and region in _names(remote):  # else it is refused, and nobody is asked
        agreed(
            f"The tenants that a failover took from {region} will be at home there again.", yes=yes
        )
    moved, told, times = 0, "", 0
    while (done := remote.call("POST", where, _asked(force))).get("tenants_waiting"):
        moved += done["tenants"]
        if not told:
            sys.stderr.write("Ctrl-C ends this wait alone; --force does not wait.\n")
        if told != (told := _still(done)):
            sys.stderr.write(told)
            times = 0
        times += 1
        if times == STANDS_STILL_TIMES:
            sys.stderr.write(_why(done))
        time.sleep(ASK_AGAIN_SECONDS)
    done["tenants"] += moved
    options.record(done, lambda: _said(done))


def _allow_though_it_answers(source: str, force: bool) -> None:
    """Here as well: a server of the build before does it without a word."""
    if not force:
        raise InvalidRequest(
            f"{source} answers, so it is not lost. Nothing was changed. Make sure that its servers"
            " do not run; move single tenants with `fairway region set-home`; or say --force."
        )
    sys.stderr.write(
        f"Warning: {source} answers, so it is not lost; a failover is done nevertheless."
        " What waits there is handed over only once it has heard of this; jobs that it"
        " runs meanwhile end there.\n"
    )


def _known_of(lost: Record, known: Record) -> str:
    """How many tenants are concerned; of whoever was moved there a moment ago, the region that
    answers may not have heard."""
    count = lost["tenants"]
    seen = f"{known['here']} knows of {count or 'none'}"
    if known["lag_seconds"] >= LAG_TOLD_SECONDS:
        return f"{seen}, as it was {span(known['lag_seconds'])} ago"
    return seen if count else f"{seen} yet: it hears of changes elsewhere some seconds later"


def _names(remote: Remote) -> set[str]:
    return {one["name"] for one in remote.get("/v1/regions")["regions"]}


def _asked(force: bool) -> dict[str, Any]:
    """Said only where it is wished: a directory of the build before knows no such field."""
    return {"force": True} if force else {}


def _still(done: dict[str, Any]) -> str:
    tenants = counted(done["tenants_waiting"], "tenant")
    return (
        f"{done['target']} has still to hand over what it has of {tenants}"
        f" (waiting jobs found so far: {done['jobs_waiting']}).\n"
    )


def _why(done: dict[str, Any]) -> str:
    return (
        "This does not change. If the region that they are at home in now lacks a pool of these"
        f" jobs, make it there: the log of {done['target']} says `home takes some not yet` then.\n"
    )


def _said(done: dict[str, Any]) -> str:
    moved = (
        counted(done["tenants"], "tenant was", "tenants were")
        if done["tenants"]
        else "No tenant was"
    )
    return (
        f"{moved} moved to {done['target']}; the directory is {done['directory']}"
        f" (term {done['directory_term']})."
    )
