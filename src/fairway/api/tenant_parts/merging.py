"""Replies of a tenant's parts as one reply: pure functions of JSON, one for each endpoint.

What counts is added up. Of times the longest is told: a percentile of all cannot be had of
percentiles. What is listed by job ids goes on from one place, which is the same for all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from fairway.api.filters import cursor_of, place_of
from fairway.core.billing.pricing import amount_of

Body: TypeAlias = dict[str, Any]
Row: TypeAlias = dict[str, Any]
GROUPS_MAX = 200


def pages(bodies: Sequence[Body], items: str, id_: str, limit: int | None) -> Body:
    """Newest first. Nothing is shown beyond where some part's own page ended: what is there comes
    with the next page, of all parts."""
    ends = [place_of(one["next_cursor"]) for one in bodies if one["next_cursor"] is not None]
    end = max(ends, default="")
    found = [item for body in bodies for item in body[items] if item[id_] >= end]
    found.sort(key=lambda item: str(item[id_]), reverse=True)
    shown = found if limit is None else found[:limit]
    next_cursor = cursor_of(end) if end else None
    if len(shown) < len(found):
        next_cursor = cursor_of(shown[-1][id_])
    return {items: shown, "next_cursor": next_cursor}


def failure_groups(bodies: Sequence[Body]) -> Body:
    groups: dict[tuple[str, str], Row] = {}
    types: dict[str, Row] = {}
    for body in bodies:
        for one in body["groups"]:
            known = groups.get(key := (one["fingerprint"], one["type"]))
            latest = one if known is None or one["last_died_at"] > known["last_died_at"] else known
            groups[key] = latest | _counted(known, one)
        for one in body["types"]:
            types[one["type"]] = one | _counted(types.get(one["type"]), one)
    return {"groups": _largest(groups.values()), "types": _largest(types.values())}


def _counted(known: Row | None, one: Row) -> Row:
    if known is None:
        return {}
    is_exact = known["count_is_exact"] and one["count_is_exact"]
    return {"count": known["count"] + one["count"], "count_is_exact": is_exact}


def _largest(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda one: -one["count"])[:GROUPS_MAX]


def restraints(bodies: Sequence[Body]) -> Body:
    """Each once, as the first part that has it tells it."""
    circuits = {(c["type"], c["dependency"]): c for b in reversed(bodies) for c in b["circuits"]}
    held = {one["type"]: one for body in reversed(bodies) for one in body["quarantines"]}
    return {"circuits": list(circuits.values()), "quarantines": list(held.values())}


def limits(bodies: Sequence[Body]) -> Body:
    """What is left is what all have left: one of them may have none."""
    merged = dict(bodies[0])
    for name in ("weight", "rate_per_second", "burst", "jobs_left", "depth", "depth_limit", "cap"):
        merged[name] = _sum(one[name] for one in bodies)
    refused: dict[str, int] = {}
    for body in bodies:
        for code, count in body["refused"].items():
            refused[code] = refused.get(code, 0) + count
    merged["refused"] = refused
    merged["reached"] = list(dict.fromkeys(name for body in bodies for name in body["reached"]))
    held: list[Row] = []
    for one in (hold for body in bodies for hold in body["held"]):
        if one not in held:
            held.append(one)
    return merged | {"held": held}


_TIMES = ("pickup_seconds", "end_to_end_seconds")


def overview(bodies: Sequence[Body]) -> Body:
    pools: list[Row] = []
    for pool in bodies[0]["pools"]:
        same = [one for body in bodies for one in body["pools"] if one["name"] == pool["name"]]
        summed = [name for name in pool if name != "name" and name not in _TIMES]
        merged = {name: _sum(one[name] for one in same) for name in summed}
        merged["oldest_runnable_age_seconds"] = _max(o["oldest_runnable_age_seconds"] for o in same)
        merged |= {
            name: {part: _max(one[name][part] for one in same) for part in pool[name]}
            for name in _TIMES
        }
        pools.append({"name": pool["name"], **merged})
    return bodies[0] | {"at": min(one["at"] for one in bodies), "pools": pools}


_LONGEST = ("slots", "oldest_age_seconds", "pickup_p50", "pickup_p99", "run_p50", "run_p99")


def history(bodies: Sequence[Body]) -> Body:
    """Side by side with the first's `at`: all were asked for the same steps."""
    merged = dict(bodies[0])
    for name, values in bodies[0].items():
        if isinstance(values, list) and name != "at":
            of = _max if name in _LONGEST else _sum
            columns = [_by_step(body, name) for body in bodies]
            merged[name] = [of(one.get(at) for one in columns) for at in merged["at"]]
    return merged


def _by_step(body: Body, name: str) -> dict[int, Any]:
    return dict(zip(body["at"], body[name], strict=True))


def shares(bodies: Sequence[Body]) -> Body:
    """By pool; whose they are the first tells."""
    pools: dict[str, Row] = {}
    for one in (item for body in bodies for item in body["items"]):
        known = pools.get(one["pool"])
        if known is None:
            pools[one["pool"]] = dict(one)
            continue
        for name in ("weight", "queued", "running", "share_received", "share_entitled"):
            known[name] = _sum((known[name], one[name]))
        known["throttled"] = known["throttled"] or one["throttled"]
    return {"items": list(pools.values()), "next": None}


_PRICED = ("kind", "pool", "type", "price_micros")
_SUMMED = ("jobs", "attempts", "billed_us", "unbilled_us")


def statement(bodies: Sequence[Body]) -> Body:
    """A tenant pays each base fee once, also that of a pool which only some of its parts used; what
    it used is rounded once. It is closed when all parts are."""
    lines: dict[tuple[Any, ...], Row] = {}
    for line in (one for body in bodies for one in body["lines"]):
        key = tuple(line[name] for name in _PRICED)
        lines[key] = _line_of_both(lines[key], line) if key in lines else line
    is_closed = all(body["closed"] for body in bodies)
    closed = [body["closed_at"] for body in bodies if body["closed_at"] is not None]
    return bodies[0] | {
        "closed": is_closed,
        "closed_at": max(closed, default=None) if is_closed else None,
        "lines": [lines[key] for key in sorted(lines)],
        "total_micros": sum(line["amount_micros"] for line in lines.values()),
    }


def _line_of_both(known: Row, line: Row) -> Row:
    if line["kind"] == "base_fee":
        return known
    both = line | {name: known[name] + line[name] for name in _SUMMED}
    return both | {"amount_micros": amount_of(both["billed_us"], both["price_micros"])}


def _sum(values: Iterable[Any]) -> Any:
    """Of those that are known; None: none is."""
    known = [one for one in values if one is not None]
    return sum(known) if known else None


def _max(values: Iterable[Any]) -> Any:
    return max((one for one in values if one is not None), default=None)


#: What becomes of the replies, by endpoint; pages are merged by their limit besides.
MERGES: dict[str, Callable[[Sequence[Body]], Body]] = {
    "GET /v1/dead-letters/groups": failure_groups,
    "GET /v1/restraints": restraints,
    "GET /v1/statements/{month}": statement,
    "GET /v1/overview": overview,
    "GET /v1/history": history,
    "GET /v1/limits": limits,
    "GET /v1/tenants/{name}/limits": limits,
    "GET /v1/shares": shares,
}
#: Lists: the name of the items, and of a job's id in them.
PAGES: dict[str, tuple[str, str]] = {
    "GET /v1/jobs": ("jobs", "id"),
    "GET /v1/dead-letters": ("jobs", "id"),
    "GET /v1/usage/attempts": ("attempts", "job"),
}
