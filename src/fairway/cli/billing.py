"""`fairway usage`, `prices`, `spend-cap`: what was used, what it costs, what may be spent.

Money is shown in the currency's own unit with six places: the server counts in millionths, and
nothing is rounded on the way.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import quote

from cyclopts import Parameter

from fairway.cli.remote import PLAIN, Options, Remote
from fairway.cli.terminal.moments import future, past
from fairway.cli.terminal.output import Column, Record, fields_of, show_table
from fairway.core.billing.money import exact
from fairway.core.errors import InvalidRequest
from fairway.core.keys import ApiKey

Of = Annotated[str | None, Parameter(help="Whose, with the operator's key.")]

USAGE = (
    Column("from", lambda one: _period(one["period"])),
    Column("pool", lambda one: one["pool"] or "all"),
    Column("type", lambda one: one["type"] or "all"),
    Column("jobs", "jobs"),
    Column("attempts", "attempts"),
    Column("slot-seconds", lambda one: exact(one["billed_us"])),
    Column("not billed", lambda one: exact(one["unbilled_us"])),
)
LINES = (
    Column("for", lambda one: one["type"] or "base fee"),
    Column("pool", "pool"),
    Column("jobs", "jobs"),
    Column("attempts", "attempts"),
    Column("slot-seconds", lambda one: exact(one["billed_us"])),
    Column("price", lambda one: exact(one["price_micros"])),
    Column("amount", lambda one: exact(one["amount_micros"])),
)
PRICES = (
    Column("id", "id"),
    Column("pool", "pool"),
    Column("from", lambda one: _period(one["valid_from"])),
    Column("a slot-second", lambda one: exact(one["slot_second_micros"])),
    Column("a month", lambda one: exact(one["base_fee_micros"])),
)


def usage(
    *,
    since: str | None = None,
    until: str | None = None,
    by: Literal["hour", "day", "month"] = "day",
    group: str = "pool",
    csv: Annotated[bool, Parameter(negative="")] = False,
    statement: str | None = None,
    tenant: Of = None,
    options: Options = PLAIN,
) -> None:
    """What a tenant used, by period, pool and type; or what a month came to.

    Parameters
    ----------
    since
        From that hour on: 30m, 2h, 1d, yesterday, or a time; else from the month's beginning.
    until
        And before that hour.
    by
        The length of a period, of UTC.
    group
        What to tell apart: pool, type, or pool,type.
    csv
        As the server's CSV.
    statement
        The statement of a month instead, as in 2026-01.
    """
    remote, whose = _remote(options, tenant), {"tenant": tenant}
    if statement is not None:
        _show_statement(options, remote.get(f"/v1/statements/{statement}", **whose))
        return
    hours = {"from": _hour(since, "since"), "to": _hour(until, "until", up=True)}
    asked: dict[str, Any] = {**whose, **hours, "by": by, "group": group}
    if csv:
        reply = remote.reply("GET", "/v1/usage", query=asked | {"format": "csv"})
        if reply.status >= 400:
            remote.read(reply)
        sys.stdout.write(reply.content.decode())
        return
    found = remote.get("/v1/usage", **asked)
    options.rows(found, found["lines"], USAGE, "Nothing was used in that time.")


def prices(*new: str, drop: str | None = None, options: Options = PLAIN) -> None:
    """The price list; with `slot_second=…`, add a price that is to come (operator).

    Parameters
    ----------
    new
        As field=value, money with up to six places: slot_second=0.000025 base_fee=5
        pool=long valid_from=2026-12-01T00:00Z. Left out: every pool, no base fee, the next hour.
    drop
        Take back the price of this id, as the list has it: one that has not begun.
    """
    if drop is not None:
        if new:
            raise InvalidRequest("--drop takes a price back; add another by itself.")
        options.operator().call("DELETE", f"/v1/prices/{quote(drop, safe='')}")
        options.record({"id": drop, "dropped": True}, f"Taken back: {drop}")
        return
    if new:
        body = _new_price(new)
        added = options.operator().call("POST", "/v1/prices", body)
        options.record(added, f"From {added['valid_from']}: {_price_words(added)}")
        return
    remote = options.operator() if options.has_key("operator") else options.tenant()
    found = remote.get("/v1/prices")
    options.rows(found, found["prices"], PRICES, "There are no prices: nothing is charged.")


def spend_cap(
    tenant: str | None = None,
    cap: str | None = None,
    *,
    grace_seconds: int | None = None,
    none: Annotated[bool, Parameter(negative="")] = False,
    options: Options = PLAIN,
) -> None:
    """What a tenant may spend in a month, and where it stands; without a name, your own.

    Parameters
    ----------
    tenant
        Whose, with the operator's key.
    cap
        Set it to this, in the currency's unit with up to six places.
    grace_seconds
        For so long after it is reached jobs still start; an hour if left out.
    none
        Take the cap away.
    """
    _check_cap(tenant, cap, grace_seconds, none=none)
    if tenant is None:
        _show_cap(options, options.tenant().get("/v1/spend-cap"))
        return
    remote, path = options.operator(), f"/v1/tenants/{tenant}/spend-cap"
    if none:
        remote.call("DELETE", path)
        options.record({"tenant": tenant, "cap": None}, f"{tenant} may spend what it likes.")
    elif cap is not None:
        body = {"cap_micros": _micros(cap, "CAP")}
        if grace_seconds is not None:
            body["grace_seconds"] = grace_seconds
        _show_cap(options, remote.call("PUT", path, body))
    else:
        _show_cap(options, remote.get(path))


def _check_cap(
    tenant: str | None, cap: str | None, grace_seconds: int | None, *, none: bool
) -> None:
    """What is said together must mean something together."""
    if none and (cap is not None or grace_seconds is not None):
        raise InvalidRequest("--none takes the cap away: say either that, or a cap.")
    if grace_seconds is not None and cap is None:
        raise InvalidRequest("--grace-seconds goes with a cap, as in `fairway spend-cap acme 50`.")
    if none and tenant is None:
        raise InvalidRequest("Say whose, as in `fairway spend-cap acme --none`.")


# -- words ---------------------------------------------------------------------------------------


def _micros(text: str, name: str) -> int:
    whole, _, rest = text.partition(".")
    digits = f"{whole}{rest}"
    if not (digits.isascii() and digits.isdigit()) or len(rest) > 6:
        raise InvalidRequest(f"{name} is a number with up to six places, such as 0.000025.")
    return int(whole or "0") * 1_000_000 + int(f"{rest:0<6}")


def _new_price(words: tuple[str, ...]) -> dict[str, Any]:
    given = dict(word.partition("=")[::2] for word in words)
    unknown = sorted(given.keys() - {"pool", "valid_from", "base_fee", "slot_second"})
    if unknown or "slot_second" not in given:
        raise InvalidRequest(
            "Say slot_second=0.000025, and if you like pool=, base_fee= and valid_from=."
        )
    body: dict[str, Any] = {"pool": given["pool"]} if "pool" in given else {}
    if "valid_from" in given:
        body["valid_from"] = future(given["valid_from"], "valid_from", datetime.now(UTC))
    for name in ("slot_second", "base_fee"):
        if name in given:
            body[f"{name}_micros"] = _micros(given[name], name)
    return body


def _price_words(price: Record) -> str:
    pool = "every pool" if price["pool"] == "*" else f"the pool {price['pool']}"
    slot, base = exact(price["slot_second_micros"]), exact(price["base_fee_micros"])
    return f"{slot} a slot-second in {pool}, {base} a month."


def _show_cap(options: Options, found: Record) -> None:
    """For programs as it came, and with money that people can read; for people only that."""
    money = {
        name.removesuffix("_micros"): None if value is None else exact(value)
        for name, value in found.items()
        if name.endswith("_micros")
    }
    plain = {name.removesuffix("_micros"): value for name, value in found.items()}
    options.record(dict(found) | money, lambda: "\n".join(fields_of(plain | money)))


def _show_statement(options: Options, found: Record) -> None:
    if options.form != "table":
        options.rows(found, found["lines"], LINES, "")
        return
    state = "closed" if found["closed"] else "open"
    title = f"{found['tenant']}, {found['month']} ({state}): {exact(found['total_micros'])}"
    options.record(found, title)
    if found["lines"]:
        show_table(LINES, found["lines"])


def _hour(text: str | None, name: str, *, up: bool = False) -> str | None:
    """The hour that a moment is in, or with `up` the next: usage is kept by the hour."""
    moment = past(text, name, datetime.now(UTC))
    if moment is None:
        return None
    there = datetime.fromisoformat(moment).astimezone(UTC)
    hour = there.replace(minute=0, second=0, microsecond=0)
    if up and hour != there:
        hour += timedelta(hours=1)
    return hour.isoformat().replace("+00:00", "Z")


def _period(text: str) -> str:
    return text.replace("T", " ").replace(":00Z", "").removesuffix("Z")


def _remote(options: Options, tenant: str | None) -> Remote:
    given = ApiKey.parse(options.key) if options.key else None
    is_operators = given is not None and given.scope == "operator"
    return options.operator() if tenant is not None or is_operators else options.tenant()
