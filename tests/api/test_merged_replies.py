"""Each part is asked, and the replies are one: what comes out is what one shard would have said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from fairway.api import every_part
from fairway.api.auth import CALLER
from fairway.api.tenant_parts import merging
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.services.registry.principal import Principal
from fairway.services.registry.tenant_parts import TenantParts

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


@pytest.mark.parametrize(
    ("tenant", "asked", "of_part"),
    [
        ("v1", "/v1/tenants/v1/limits?", "/v1/tenants/v1#1/limits?"),
        ("big", "/v1/statements/2026-01?tenant=big", "/v1/statements/2026-01?tenant=big%231"),
        ("big", "/v1/history?of=tenant&name=big", "/v1/history?of=tenant&name=big%231"),
        ("big", "/v1/history?of=type&name=big", "/v1/history?of=type&name=big"),
    ],
)
def test_a_part_is_named_where_its_tenant_is_and_nowhere_else(
    tenant: str, asked: str, of_part: str
) -> None:
    ids = TenantId(1), TenantId(2)
    known = {
        ids[0]: Tenant(ids[0], tenant, 1, 1, parts=ids),
        ids[1]: Tenant(ids[1], f"{tenant}#1", 1, 1, part_of=ids[0]),
    }
    platform = SimpleNamespace(directory=SimpleNamespace(parts=TenantParts(known)))
    path, _, query = asked.partition("?")
    scope = {
        "type": "http",
        "app": SimpleNamespace(state=SimpleNamespace(platform=platform)),
        "path": path,
        "path_params": {"name": tenant} if f"/{tenant}/limits" in path else {},
        "query_string": query.encode(),
        "headers": [],
        CALLER: Principal("k", "operator", None, frozenset()),
    }
    told = every_part._each(Request(scope), known[ids[0]], 1)
    assert f"{told.scope['path']}?{told.scope['query_string'].decode()}" == of_part
    assert told.headers["fairway-part"] == "1"
