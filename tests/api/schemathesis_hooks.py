"""What schemathesis must not do: wait as long as it may, or write ten thousand jobs at a time."""

from __future__ import annotations

from typing import Any

import schemathesis

from fairway.wire.messages import BATCH_MAX

BATCH_ENOUGH = 100


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    headers, body = case.headers or {}, case.body
    for name in [name for name in headers if name.lower() == "prefer"]:
        del headers[name]
    if str((case.query or {}).get("wait", "")).isdigit():
        case.query["wait"] = min(int(case.query["wait"]), 1)
    if isinstance(body, dict) and isinstance(body.get("wait_ms"), int):
        body["wait_ms"] = min(body["wait_ms"], 1)
    jobs = body.get("jobs") if isinstance(body, dict) else None
    if isinstance(jobs, list) and BATCH_ENOUGH < len(jobs) <= BATCH_MAX:
        body["jobs"] = jobs[:BATCH_ENOUGH]
