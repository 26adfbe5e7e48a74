"""`fairway keys …`: over HTTP, with an operator's key; the first one comes from `fairway init`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import App, Parameter

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.list_filters import check_limit
from fairway.cli.terminal.moments import age, future, seconds
from fairway.cli.terminal.output import Column, Yes, agreed
from fairway.core.errors import InvalidRequest

app = App(name="keys", help="List, make and revoke keys of tenants and workers (operator).")

LIST_MAX = 100_000
KEYS = (
    Column("id", "id"),
    Column("scope", "scope"),
    Column("tenant", lambda one: one["tenant"] or "–"),
    Column("name", lambda one: one["name"] or "–"),
    Column("used", lambda one: age(one["last_used_at"])),
    Column("may", lambda one: " ".join(one["permissions"]), "spare"),
    Column("age", lambda one: age(one["created_at"]), "spare"),
    Column("ends", lambda one: age(one["expires_at"]), "spare"),
    Column("only", lambda one: " ".join(_bounds(one)), "spare"),
)
Names = Annotated[list[str] | None, Parameter(consume_multiple=True)]


@app.command(name=("ls", "list"))
def list_(
    *,
    tenant: str | None = None,
    scope: str | None = None,
    limit: int = 1000,
    options: Options = PLAIN,
) -> None:
    """The keys that open something now; never their secrets.

    Parameters
    ----------
    tenant
        Only keys of this tenant.
    scope
        Only keys of this scope: tenant, worker or operator.
    limit
        So many at most.
    """
    check_limit(limit, LIST_MAX)
    found = options.operator().pages("/v1/keys", "keys", limit, tenant=tenant, scope=scope)
    options.rows({"keys": found}, found, KEYS, "No keys.")


@app.command(name=("add", "make"))
def add(
    *,
    tenant: str | None = None,
    worker: Annotated[bool, Parameter(negative="")] = False,
    operator: Annotated[bool, Parameter(negative="")] = False,
    name: str = "",
    may: Names = None,
    expires: str | None = None,
    pool: Names = None,
    type: Names = None,
    only: Names = None,
    options: Options = PLAIN,
) -> None:
    """Make a key and print it, once: of a tenant's programs, of workers or of operators.

    Parameters
    ----------
    tenant
        Whose it is. A worker's key without one serves all tenants.
    worker
        For workers, not for programs that hand jobs in.
    operator
        For operators.
    name
        What it is for, in a few words.
    may
        What it may do: read, submit, operate, admin (default: all that such a key can).
    expires
        When it stops working: after 90d, or at a time (default: never).
    pool
        A worker's key: the pools it serves (default: any).
    type
        A worker's key: the job types it runs (default: any).
    only
        A worker's key of no tenant: the tenants whose jobs it runs (default: any).
    """
    if not (tenant or worker or operator):
        raise InvalidRequest("Say for whom: --tenant acme, --worker or --operator.")
    if worker and operator:
        raise InvalidRequest("--worker or --operator: a key is for one of them.")
    wanted = {
        "scope": "worker" if worker else "operator" if operator else "tenant",
        "tenant": tenant,
        "name": name,
        "permissions": may,
        "pools": pool,
        "types": type,
        "tenants": only,
        "expires_at": future(expires, "expires", datetime.now(UTC)),
    }
    made = options.operator().call("POST", "/v1/keys", wanted)
    options.record(made, made["api_key"])


@app.command
def rotate(id: str, *, overlap: str = "1d", options: Options = PLAIN) -> None:
    """Make a key in place of another and print it, once; the old one ends after the overlap.

    Parameters
    ----------
    id
        The old key's public part, as `fairway keys ls` shows it; the whole key will do, too.
    overlap
        How long both work, as in 1h.
    """
    wanted = {"overlap_seconds": round(seconds(overlap, "--overlap") or 0)}
    made = options.operator().call("POST", f"/v1/keys/{_public_part(id)}/rotate", wanted)
    options.record(made, made["api_key"])


@app.command(name=("revoke", "rm"))
def revoke(id: str, *, yes: Yes = False, options: Options = PLAIN) -> None:
    """Revoke a key: within 5 s it opens nothing on any server. Says whose it is, and asks.

    Parameters
    ----------
    id
        Its public part, as `fairway keys ls` shows it; the whole key will do, too.
    """
    key = _public_part(id)
    remote = options.operator()
    page = remote.get("/v1/keys", cursor=_before(key), limit=1)["keys"]
    if page and page[0]["id"] == key:
        whose = f"the {page[0]['scope']} key {key} of {page[0]['tenant'] or 'no tenant'}"
        agreed(f"This revokes {whose}, made {age(page[0]['created_at'])} ago.", yes=yes)
    remote.call("DELETE", f"/v1/keys/{key}")
    options.record({"id": key, "revoked": True}, f"Revoked: {key}")


def _bounds(one: Mapping[str, Any]) -> list[str]:
    return [*(one["pools"] or ()), *(one["types"] or ()), *(one["tenants"] or ())]


def _public_part(key: str) -> str:
    return key.split("_")[2] if key.count("_") == 4 else key  # a secret need not travel


def _before(key: str) -> str:
    """The place just before this key in the list of keys, whose public parts are hexadecimal."""
    try:
        number = int(key, 16)
    except ValueError:
        raise InvalidRequest(f"{key[:64]!r} is no key's id; see `fairway keys ls`.") from None
    return f"{number - 1:0{len(key)}x}" if number else ""
