"""Replies of a tenant's parts as one: what comes out is what one shard would have said."""

from __future__ import annotations

from typing import Any

from fairway.api.tenant_parts import merging

MILLION = 1_000_000


def _line(kind: str, pool: str, price: int, billed_us: int = 0) -> dict[str, Any]:
    amount = price if kind == "base_fee" else (billed_us * price + MILLION // 2) // MILLION
    used = {"jobs": 1, "attempts": 1, "billed_us": billed_us, "unbilled_us": 0}
    named = {"kind": kind, "pool": pool, "type": "" if kind == "base_fee" else "t"}
    return named | used | {"price_micros": price, "amount_micros": amount}


def _statement(*lines: dict[str, Any]) -> dict[str, Any]:
    body = {"tenant": "big", "month": "2026-01", "closed": True, "closed_at": None}
    return body | {"lines": [*lines], "total_micros": sum(one["amount_micros"] for one in lines)}


def test_a_base_fee_is_paid_once_whichever_part_used_its_pool() -> None:
    everybodys, of_long = _line("base_fee", "*", 7), _line("base_fee", "long", 50)
    first = _statement(everybodys, _line("usage", "short", 25, MILLION))
    others = _statement(everybodys, of_long, _line("usage", "long", 25, MILLION))
    told = merging.statement([first, others, others])
    assert [(one["kind"], one["pool"], one["amount_micros"]) for one in told["lines"]] == [
        ("base_fee", "*", 7),
        ("base_fee", "long", 50),
        ("usage", "long", 50),
        ("usage", "short", 25),
    ]
    assert told["total_micros"] == 132


def test_what_all_parts_used_is_rounded_once() -> None:
    part = _statement(_line("usage", "short", 1, MILLION // 2))
    (line,) = merging.statement([part] * 4)["lines"]
    assert (line["jobs"], line["billed_us"], line["amount_micros"]) == (4, 2 * MILLION, 2)
