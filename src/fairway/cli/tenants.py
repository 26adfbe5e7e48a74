"""`fairway tenants …`, `tiers`, `limits`: who gets what."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options, Remote
from fairway.cli.terminal.list_filters import check_limit
from fairway.cli.terminal.output import Column, Yes, agreed, fields_of
from fairway.core.errors import InvalidRequest

app = App(name="tenants", help="List, add, change, suspend and delete tenants (operator).")

NUMBERS = ("weight", "cap", "rate_per_second", "burst", "depth_limit")
FIELDS = ("tier", *NUMBERS, "reserved")
LIST_MAX = 100_000
TENANTS = (
    Column("name", "name"),
    Column("state", "state"),
    Column("tier", "tier"),
    Column("weight", "weight"),
    Column("rate/s", "rate_per_second"),
    Column("burst", "burst", "spare"),
    Column("depth limit", "depth_limit"),
    Column("cap", "cap", "spare"),
    Column("reserved", "reserved", "spare"),
)
HOME = Column("home", "home_region")  # only where there are several regions
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
def list_(
    *,
    search: str | None = None,
    state: str | None = None,
    tier: str | None = None,
    limit: int = 1000,
    options: Options = PLAIN,
) -> None:
    """Tenants by name, with the values in force.

    Parameters
    ----------
    search
        Only those with this somewhere in their name.
    state
        Only active, suspended or deleted ones, or several with commas between (default: all that
        are not deleted).
    tier
        Only those of this tier.
    limit
        So many at most.
    """
    check_limit(limit, LIST_MAX)
    asked = {"q": search, "state": state, "tier": tier}
    found = options.operator().pages("/v1/tenants", "tenants", limit, **asked)
    is_narrow = any(value is not None for value in asked.values())
    none = "No such tenants." if is_narrow else "No tenants: `fairway tenants add` makes one."
    columns = (*TENANTS[:2], HOME, *TENANTS[2:]) if _have_homes(found) else TENANTS
    options.rows({"tenants": found}, found, columns, none)


def _have_homes(found: list[dict[str, Any]]) -> bool:
    return any(one.get("home_region") for one in found)


@app.command
def add(name: str, *settings: str, options: Options = PLAIN) -> None:
    """Add a tenant and print its first key.

    Parameters
    ----------
    settings
        As field=value: tier=pro weight=50 rate_per_second=500 reserved.short=10 shard=63;
        shards=4 for one that is too much for a server, which cannot be changed later
    """
    wanted = {"name": name} | parsed(settings, (*FIELDS, "shard", "shards"))
    added = options.operator().call("POST", "/v1/tenants", wanted)

    def text() -> str:
        facts = "\n".join(fields_of(added))
        return f"{facts}\n\nThe key is shown this once: keep it, or make another."

    options.record(added, text)


@app.command
def show(name: str, *, options: Options = PLAIN) -> None:
    """A tenant with the values in force."""
    _show(options.operator().get(f"/v1/tenants/{name}"), options)


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
    changed = options.operator().call("PATCH", f"/v1/tenants/{name}", parsed(settings, FIELDS))
    _show(changed, options)


def _show(tenant: dict[str, Any], options: Options) -> None:
    """People would take one shard of a list of one for how many there are."""
    alone = [f"only {shard}" for shard in tenant["shards"]] if len(tenant["shards"]) == 1 else None
    for_people = tenant | {"shards": alone or tenant["shards"]}
    options.record(tenant, lambda: "\n".join(fields_of(for_people)))


@app.command
def suspend(
    name: str,
    *,
    reason: str | None = None,
    replace_reason: Annotated[bool, Parameter(negative="")] = False,
    cancel_running: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Keep a tenant from doing anything until it is resumed; nothing is lost. Asks first.

    Within 5 s its keys open nothing, its workers are shut out and none of its jobs starts.

    Parameters
    ----------
    reason
        One line for people: the tenant's programs hear it. Of one that is suspended the first
        stays.
    replace_reason
        Of one that is suspended: put this reason in its place.
    cancel_running
        Cancel what runs (default: it finishes, or what was chosen before).
    """
    if replace_reason and reason is None:
        raise InvalidRequest("Say which: --replace-reason goes with --reason.")
    remote, ends = options.operator(), "is cancelled" if cancel_running else "finishes"
    _agreed_of(remote, name, f"suspends {name}; what shared workers run of it {ends}", yes=yes)
    wanted: dict[str, Any] = {"running": "cancel" if cancel_running else None, "reason": reason}
    wanted |= {"replace_reason": True} if replace_reason else {}
    done = remote.call("POST", f"/v1/tenants/{name}/suspend", wanted)
    is_kept = reason not in (None, done["reason"])
    stays = f"; it was before, and its reason stays: {done['reason']} (--replace-reason)"
    options.record(done, f"Suspended: {name}{stays if is_kept else ''}")


@app.command
def resume(name: str, *, options: Options = PLAIN) -> None:
    """Let a suspended tenant work again, as before."""
    done = options.operator().call("POST", f"/v1/tenants/{name}/resume")
    options.record(done, f"Active again: {name}")


@app.command(name=("delete", "rm"))
def delete(
    name: str,
    *,
    suspend: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    options: Options = PLAIN,
) -> None:
    """Delete a suspended tenant: its keys, its schedules and what waits. Asks first.

    Its name stays taken, and it can be restored, for FAIRWAY_DELETED_TENANT_DAYS.

    Parameters
    ----------
    suspend
        Also one that is active: it is suspended first.
    """
    remote = options.operator()
    _agreed_of(remote, name, f"revokes all keys of {name} and cancels all of its jobs", yes=yes)
    query = {"suspend": "true" if suspend else "false"}
    done = remote.call("DELETE", f"/v1/tenants/{name}", query=query)
    options.record(done, f"Deleted: {name}; it can be restored until {done['kept_until']}")


@app.command
def restore(name: str, *, options: Options = PLAIN) -> None:
    """Bring a deleted tenant back: it is suspended then, and has no keys."""
    done = options.operator().call("POST", f"/v1/tenants/{name}/restore")
    options.record(done, f"Restored, and suspended: {name}; `fairway tenants resume` lets it work")


def tiers(*, options: Options = PLAIN) -> None:
    """All tiers and what their tenants are entitled to."""
    found = options.operator().get("/v1/tiers")
    options.rows(found, found["tiers"], TIERS, "No tiers.")


def limits(*, tenant: str | None = None, options: Options = PLAIN) -> None:
    """What this tenant may do, how much is used, what holds its jobs, and what was refused.

    Parameters
    ----------
    tenant
        Of this tenant, with an operator's key.
    """
    if tenant is None:
        options.record(options.tenant().get("/v1/limits"))
    else:
        options.record(options.operator().get(f"/v1/tenants/{tenant}/limits"))


def _agreed_of(remote: Remote, name: str, what: str, *, yes: bool) -> None:
    """Nobody is asked about a tenant that is not there."""
    if not yes:
        remote.get(f"/v1/tenants/{name}")
    agreed(f"This {what}.", yes=yes)


#: What is said when a tenant is made, and not changed like its other fields.
ELSEWHERE = {
    "shard": "A tenant is moved to another shard with `fairway shards move TENANT --to N`.",
    "shards": "How many shards a tenant has is said when it is made, and not changed later.",
}


def parsed(settings: tuple[str, ...], known: tuple[str, ...]) -> dict[str, Any]:
    """`("weight=5", "reserved.short=2")` as the fields of a request, which has those in `known`."""
    found: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidRequest(
                f"{text!r}: write it as field=value; the fields are {', '.join(known)}."
            )
        if name in ELSEWHERE and name not in known:
            raise InvalidRequest(ELSEWHERE[name])
        if name.partition(".")[0] not in known:
            raise InvalidRequest(f"There is no field {name!r}; there are {', '.join(known)}.")
        if name.startswith("reserved."):
            found.setdefault("reserved", {})[name.removeprefix("reserved.")] = _number(name, value)
        elif name == "shards" and not value:
            raise InvalidRequest("shards is a whole number from 1 on.")
        elif name in (*NUMBERS, "shard", "shards"):
            found[name] = _number(name, value) if value else None
        else:
            found[name] = value
    return found


def _number(name: str, value: str) -> int:
    if not value.isdigit():
        raise InvalidRequest(f"{name} must be a whole number from 0 on, not {value!r}.")
    return int(value)
