"""What an operator sees and holds back: pauses, pools, job types, changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from fairway.cli.remote import PLAIN, Options, Remote
from fairway.cli.tenants import parsed
from fairway.cli.terminal.moments import age, past, span
from fairway.cli.terminal.output import Column, Record, Yes, agreed, shown
from fairway.core.billing.money import exact
from fairway.core.keys import ApiKey

Mine = Annotated[
    bool, Parameter(negative="", help="Of your own tenant only, with the tenant's key.")
]

FIELDS = ("tenant", "type", "pool")
PAUSES = (
    Column("tenant", lambda one: one.get("tenant") or "every tenant"),
    Column("type", lambda one: one.get("type") or "every type"),
    Column("pool", lambda one: one.get("pool") or "every pool"),
)
POOLS = (
    Column("name", "name"),
    Column("slots", "slots"),
    Column("attempts", "attempts"),
    Column("lease", lambda one: span(one["lease_seconds"])),
    Column("runs in", lambda one: one["run_mode"] or "any"),
    Column("pick-up", lambda one: span(one["pickup_target_seconds"]), "spare"),
    Column("labels", "labels", "spare"),
    Column("checkpoints", "checkpoint", "spare"),
)
TYPES = (
    Column("name", "name"),
    Column("pool", "pool"),
    Column("measured pool", "measured_pool"),
    Column("95 % end within", lambda one: _seconds(one["measured_p95_seconds"])),
    Column("attempts", "attempts", "spare"),
    Column("time limit", lambda one: _seconds(one["timeout_seconds"]), "spare"),
    Column("needs", "dependency", "spare"),
)
CHANGES = (
    Column("age", lambda one: age(one["at"])),
    Column("who", lambda one: one["actor_name"] or one["actor"]),
    Column("from", "address", "spare"),
    Column("did", lambda one: one["action"].replace("_", " ")),
    Column("to", "subject"),
    Column("before → after", lambda one: _difference(one), "fold"),
    Column("request", "request_id", "spare"),
)


# -- pauses --------------------------------------------------------------------------------------


def pauses(*, mine: Mine = False, options: Options = PLAIN) -> None:
    """What is paused: all of it for an operator; for a tenant what may hold its jobs."""
    found = _whose(options, mine).get("/v1/pauses")
    options.rows(found, found["pauses"], PAUSES, "Nothing is paused.")


def pause(*what: str, mine: Mine = False, yes: Yes = False, options: Options = PLAIN) -> None:
    """Keep jobs from starting; what runs, runs on.

    With an operator's key and no tenant= it holds the jobs of every tenant, and asks first.

    Parameters
    ----------
    what
        As field=value: tenant=acme, type=email.send, pool=long, or several of them.
    """
    wanted, remote = parsed(what, FIELDS), _whose(options, mine)
    if wanted and "tenant" not in wanted and _is_operator(remote):
        agreed(f"This holds {_named(wanted)} of every tenant.", yes=yes)
    done = remote.call("POST", "/v1/pauses", wanted)
    known = {name: value for name, value in done.items() if name != "type_is_known"}
    said = [f"Paused: {_whole(known)}"]
    if not done.get("type_is_known", True):
        said.append(
            f"No job type {done['type']!r} is known now: look twice at its name. If it is right,"
            " its jobs will wait when they come."
        )
    options.record(done, "\n".join(said))


def resume(*what: str, mine: Mine = False, options: Options = PLAIN) -> None:
    """End a pause: name what was named when it was made.

    Parameters
    ----------
    what
        As field=value: tenant=acme, type=email.send, pool=long, or several of them.
    """
    done = _whose(options, mine).call("DELETE", "/v1/pauses", query=parsed(what, FIELDS))
    options.record(done, f"Runs again: {_whole(done)}")


def _whose(options: Options, mine: bool) -> Remote:
    """The operator's where there is one, unless it is said otherwise; else the tenant's."""
    given = ApiKey.parse(options.key) if options.key else None
    if mine or (given is not None and given.scope == "tenant"):
        return options.tenant()
    if options.has_key("operator") or not options.has_key("tenant"):
        return options.operator()
    return options.tenant()


def pause_words(one: Record) -> str:
    """`jobs of type=x of every tenant`."""
    what = _named({name: value for name, value in one.items() if name != "tenant"})
    return f"{what or 'all jobs'} of {one.get('tenant') or 'every tenant'}"


def _is_operator(remote: Remote) -> bool:
    return remote.scope == "operator"


def _named(wanted: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in wanted.items())


def _whole(done: Record) -> str:
    """As it was understood: a tenant's key means that tenant."""
    return _named({"tenant": "(every one)"} | dict(done))


# -- what there is -------------------------------------------------------------------------------


def pools(*, options: Options = PLAIN) -> None:
    """Every pool there is, with what its jobs get unless their type says otherwise."""
    remote = options.operator() if options.has_key("operator") else options.tenant()
    found = remote.get("/v1/pools")
    options.rows(found, found["pools"], POOLS, "No pools.")


def types(*, options: Options = PLAIN) -> None:
    """Job types: what was said of each, and where the clock says it belongs (operator)."""
    found = options.operator().get("/v1/job-types")
    options.rows(found, found["job_types"], TYPES, "No job types yet: workers bring them.")


def audit(
    *,
    actor: str | None = None,
    action: str | None = None,
    subject: str | None = None,
    since: str | None = None,
    limit: int = 100,
    mine: Mine = False,
    options: Options = PLAIN,
) -> None:
    """Who changed what, newest first, and what the platform decided by itself.

    With an operator's key all of it; with a tenant's, what was done to that tenant's things.

    Parameters
    ----------
    actor
        Only what this one did: a key's public part or its name, or platform.
    action
        Only this, such as change_tenant.
    subject
        Only to this: a tenant, a key, a pool, a job type, a schedule.
    since
        Done since then: 30m, 2h, 1d, yesterday, or a time.
    limit
        So many at most.
    """
    named = None if action is None else action.replace(" ", "_")  # as the list shows it, too
    wanted = {"actor": actor, "action": named, "subject": subject}
    moment = past(since, "since", datetime.now(UTC))
    remote = _whose(options, mine)
    found = remote.pages("/v1/audit", "entries", limit, **wanted, since=moment)
    options.rows({"entries": found}, found, CHANGES, "No changes.")


def _difference(one: Record) -> str:
    """`weight 100 → 200, cap – → 5`, and what there is to say besides."""
    before, after = one["before"], one["after"]
    said = [
        f"{_field(name)} {_side(before, name)} → {_side(after, name)}"
        for name in {**before, **after}
    ]
    return "; ".join(part for part in (one["detail"], ", ".join(said)) if part)


def _field(name: str) -> str:
    """`slot second` of slot_second_micros: the value says its unit."""
    for unit in ("_micros", "_seconds"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def _side(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, int) and name.endswith("_micros"):
        return exact(value)
    if isinstance(value, int | float) and name.endswith("_seconds"):
        return span(value)
    return shown(value)


def _seconds(length_seconds: float | None) -> str:
    return "–" if length_seconds is None else span(length_seconds)
