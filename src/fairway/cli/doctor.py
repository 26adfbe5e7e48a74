"""`fairway doctor`: what is wrong now, in order of pain, each with a command that helps.

It looks with whatever keys it finds: an operator's for workers and pauses, a tenant's for what
becomes of that tenant's jobs, none for readiness and metrics. The judgement is pure
(`core/diagnosis.py`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from fairway.cli.operators import pause_words
from fairway.cli.remote import PLAIN, Options, Remote, Reply
from fairway.cli.terminal.output import painted, say, screen_width
from fairway.cli.terminal.tables import folded, visible
from fairway.core.diagnosis import Ailment, DeadGroup, Pain, PoolLoad, Signs, ailments
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.tenant import TENANT_MOVING

TYPES_ASKED = 5  # why jobs wait is asked for one job of each of so many types
QUEUED_SEEN = 200
NO_REGIONS = 404  # the platform is one
STYLES = {Pain.DOWN: "red", Pain.STUCK: "red", Pain.FAILING: "yellow", Pain.SLOW: "yellow"}
INDENT = " " * 13
NO_KEY = (
    "Looked without a key: only at what everybody sees. FAIRWAY_API_KEY, FAIRWAY_OPERATOR_KEY or"
    " --key show more, with a tenant's or an operator's."
)
WIDE, NARROW = 100_000, 30  # a pipe's lines are whole; a screen that is no screen is not obeyed
_METRIC = re.compile(r'^(fairway_\w+)(?:\{\w+="([^"]*)"\})? ([-+.\deE]+)$', re.MULTILINE)


def doctor(*, options: Options = PLAIN) -> int:
    """What is wrong now, the worst first, and what helps. Exit status 1 if jobs suffer from it."""
    # The operator last: it sees more pauses.
    remotes = [options.tenant()] if options.has_key("tenant") else []
    remotes += [options.operator()] if options.has_key("operator") else []
    by_scope = {remote.scope: remote for remote in remotes}  # --key is for both
    by_scope.pop("worker", None)  # FAIRWAY_API_KEY where a worker runs: it opens nothing here
    remotes = list(by_scope.values())
    remotes = remotes or [options.anybody()]
    found = ailments(_signs(remotes))
    records = [
        {"pain": one.pain.name.lower(), "what": one.what, "helps": one.helps} for one in found
    ]
    if options.form == "table":
        _tell(found, remotes[0].url)
        if not remotes[0].key:
            say(painted(f"    {NO_KEY}", "dim"))
    else:
        options.rows({"ailments": records}, records, (), "")
    return 1 if any(one.pain <= Pain.SLOW for one in found) else 0


def _tell(found: list[Ailment], url: str) -> None:
    if not found:
        say(f"{painted('ok', 'green')}  Nothing is wrong at {url}.")
    for number, one in enumerate(found, 1):
        mark = painted(f"{one.pain.name.lower():<7}", STYLES.get(one.pain, "dim"))
        wide = max((screen_width() or WIDE) - len(INDENT), NARROW)
        first, *rest = folded(visible(one.what), wide)
        say(f"{number:>2}  {mark}  {first}")
        for line in rest:
            say(INDENT + line)
        say(INDENT + painted(f"→ {visible(one.helps)}", "cyan"))


def _signs(remotes: list[Remote]) -> Signs:
    try:
        ready = remotes[0].reply("GET", "/readyz")
    except Unavailable:
        return Signs(is_answering=False)
    for remote in remotes[1:]:
        remote.begin_with(remotes[0])
    seen: dict[str, Any] = {"failing_checks": _failing(ready), "disk": _disk()}
    seen |= _of_metrics(remotes[0])
    for remote in remotes:
        if not remote.key:
            break
        try:
            seen |= _of_operator(remote) if remote.scope == "operator" else _of_tenant(remote)
        except Unavailable as away:  # what does not answer now is among the checks that fail
            if away.code == TENANT_MOVING:
                seen.setdefault("moving", (("Your tenant", "Nothing of it is lost."),))
    return Signs(**seen)


def _failing(ready: Reply) -> tuple[str, ...]:
    try:
        checks = msgspec.json.decode(ready.content).get("checks", {})
        return tuple(name for name, holds in checks.items() if not holds)
    except (msgspec.DecodeError, AttributeError):
        raise InvalidRequest("What answers there is no Fairway.") from None


def _disk() -> tuple[int, int] | None:
    """Of the data folder, when the platform is on this machine."""
    folder = Path(os.environ.get("FAIRWAY_DATA_DIR") or ".fairway")
    if not folder.is_dir():
        return None
    usage = shutil.disk_usage(folder)
    return usage.free, usage.total


def _of_metrics(remote: Remote) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {}
    for name, label, value in _METRIC.findall(remote.reply("GET", "/metrics").content.decode()):
        found.setdefault(name, {})[label] = float(value)
    whole = {name: sum(values.values()) for name, values in found.items()}

    def by_label(name: str) -> dict[str, float]:
        return found.get(f"fairway_{name}", {})

    queued, running, slots, oldest = (
        by_label(name)
        for name in ("jobs_queued", "jobs_running", "worker_slots", "oldest_runnable_age_seconds")
    )
    reachable = by_label("region_reachable")
    return {
        "pools": {
            pool: PoolLoad(
                int(count),
                int(running.get(pool, 0)),
                int(slots.get(pool, 0)),
                oldest.get(pool, 0.0),
            )
            for pool, count in queued.items()
        },
        "restraints": {kind: int(count) for kind, count in by_label("restraints").items()},
        "clock_skew_seconds": whole.get("fairway_clock_skew_seconds", 0.0),
        "stall_seconds": whole.get("fairway_loop_stall_seconds", 0.0),
        "usage_aside": int(by_label("set_aside_total").get("usage", 0)),
        "storage_failures": int(whole.get("fairway_storage_failures_total", 0)),
        "regions_away": tuple(name for name, is_here in reachable.items() if not is_here),
        "held_jobs": int(whole.get("fairway_region_held_jobs", 0)),
        "held_in_doubt": int(whole.get("fairway_region_held_in_doubt_jobs", 0)),
    }


def _of_operator(remote: Remote) -> dict[str, Any]:
    workers = remote.get("/v1/workers")["workers"]
    silent = [one["name"] for one in workers if one.get("silent")]
    return {
        "workers": len(workers),
        "silent_workers": tuple(silent),
        "draining_workers": tuple(one["name"] for one in workers if one["draining"]),
        "pauses": _pauses(remote),
        "region_troubles": _region_troubles(remote),
        **_of_servers(remote.get("/v1/servers")),
        "capped": tuple(remote.get("/v1/spend-caps")["tenants"]),
        "suspended": tuple(
            one["name"] for one in remote.get("/v1/tenants", state="suspended")["tenants"]
        ),
        "moving": tuple(
            (one["tenant"], one["note"])
            for one in remote.get("/v1/shards")["moves"]
            if one["finished_at"] is None
        ),
    }


def _of_servers(found: dict[str, Any]) -> dict[str, Any]:
    there = [one for one in found["items"] if one["state"] != "gone"]
    owned = sum(one["shards"] for one in there)
    return {
        "gone_servers": {
            f"{one['name']} ({one['url']})" if one["url"] else one["name"]: silent
            for one in found["items"]
            if one["state"] == "gone" and (silent := one["heartbeat_age_seconds"]) is not None
        },
        "owners": tuple(one["name"] for one in there if one["shards"]),
        "unowned_shards": max(found["shards"] - owned, 0),
    }


def _region_troubles(remote: Remote) -> dict[str, str]:
    reply = remote.reply("GET", "/v1/regions")
    told = [] if reply.status == NO_REGIONS else remote.read(reply)["regions"]
    return {one["name"]: one["trouble"] for one in told if one.get("trouble")}


def _pauses(remote: Remote) -> tuple[str, ...]:
    return tuple(pause_words(one) for one in remote.get("/v1/pauses")["pauses"])


def _of_tenant(remote: Remote) -> dict[str, Any]:
    restraints, limits = remote.get("/v1/restraints"), remote.get("/v1/limits")
    groups = remote.get("/v1/dead-letters/groups")["groups"]
    return {
        "waiting": _waiting(remote),
        "circuits": tuple((one["type"], one["dependency"]) for one in restraints["circuits"]),
        "quarantines": tuple(one["type"] for one in restraints["quarantines"]),
        "dead": tuple(map(_group, groups)),
        "depth": (limits["depth"], limits["depth_limit"]),
        "capped": _capped(remote, limits),
        "pauses": _pauses(remote),
    }


def _capped(remote: Remote, limits: Any) -> tuple[str, ...]:
    """The tenant itself, if its spend cap holds its jobs."""
    is_held = any(one["reason"] == "spend_cap" for one in limits["held"])
    return (remote.get("/v1/spend-cap")["tenant"],) if is_held else ()


def _waiting(remote: Remote) -> dict[str, tuple[int, str]]:
    jobs = remote.get("/v1/jobs", state="queued", limit=QUEUED_SEEN)["jobs"]
    counts = Counter(job["type"] for job in jobs)
    eldest = {job["type"]: job["id"] for job in jobs}  # the list has the newest first
    return {
        type_: (count, remote.get(f"/v1/jobs/{eldest[type_]}/explain")["reason"])
        for type_, count in counts.most_common(TYPES_ASKED)
    }


def _group(group: dict[str, Any]) -> DeadGroup:
    error = group["error"] or {}
    said = ": ".join(str(error[key]) for key in ("type", "message") if error.get(key))
    gone = datetime.now(UTC) - datetime.fromisoformat(group["last_died_at"])
    return DeadGroup(
        group["type"], group["count"], group["fingerprint"], said, gone.total_seconds()
    )
