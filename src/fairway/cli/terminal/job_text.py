"""One job, or why one waits, as a person reads it: what is wrong stands before what was given."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from fairway.cli.terminal.moments import age, local, span
from fairway.cli.terminal.output import painted
from fairway.cli.terminal.tables import cells_of, visible, visible_lines

#: What somebody can do about it, by the reason.
HELPS = {
    "paused": "`fairway pauses` says what is paused, and for whom",
    "no_worker": "`fairway worker module:app` starts one; `fairway worker ls` says who runs what",
    "labels": "`fairway pools` says which labels; a worker has them by --label",
}
NOBODY_TO_RUN = ("no_worker", "labels")  # a place in line means nothing then
LEAST_DUE = 0.1  # slot-seconds; a part of less says nothing
SHORT = 60  # JSON of at most so many letters stays on its line


def told(job: dict[str, Any]) -> list[str]:
    """A job as a person reads it: what is wrong stands before what was given."""
    facts = {
        "pool": f"{job['pool']}, priority {job['priority']}",
        "held": _held(job),
        "created": when(job["created_at"]),
        "due": when(job.get("execute_at")),
        "last moment": when(job.get("not_after")),
        "started": when(job.get("started_at")),
        "finished": when(job.get("finished_at")),
        "ran": ran(job),
        "runs": f"{counted(job['attempts'], 'attempt')},"
        f" {counted(job['deliveries'], 'delivery', 'deliveries')}",
        "failures": ", ".join(f"{n} × {name}" for name, n in job.get("failures", {}).items()),
        "fingerprint": job.get("fingerprint"),
        "parent": job.get("parent_id"),
        "children": job.get("children") or None,
        "tags": ", ".join(job.get("tags") or ()),
        "metadata": ", ".join(f"{name}={it}" for name, it in (job.get("metadata") or {}).items()),
        "progress": None if job.get("progress") is None else compact(job["progress"]),
    }
    return [
        f"{painted(job['id'], 'bold')}  {visible(job['type'])}  {painted(job['state'], 'bold')}",
        *(f"  {name:<12}{visible(str(text))}" for name, text in facts.items() if text not in _NONE),
        *error_lines(job),
        *json_lines("payload", job.get("payload")),
        *json_lines("result", job.get("result")),
        *_history_lines(job.get("history") or []),
    ]


_NONE = (None, "", "–")


def _held(job: dict[str, Any]) -> str | None:
    """Of one that was accepted while its home was away."""
    if "held_in" not in job:
        return None
    return f"in {job['held_in']} until {job['held_for']}, its tenant's home, takes it"


def error_lines(job: dict[str, Any]) -> list[str]:
    error = job.get("error")
    if not error:
        return []
    said = ": ".join(error[name] for name in ("type", "message") if error.get(name))
    whys = [error[name] for name in ("failure", "reason") if error.get(name)]
    why_ = ", ".join(dict.fromkeys(whys))  # often the one is the other
    stack = visible_lines(error.get("stack", "")).splitlines()
    head = f"{painted('error', 'red')}  {visible(said)}"
    head += f"  ({visible(why_)})" if why_ else ""
    return [head, *(f"  {line}" for line in stack)]


def json_lines(name: str, value: Any) -> list[str]:
    if value is None or value == {}:
        return []
    text = msgspec.json.encode(value).decode()
    if cells_of(text) <= SHORT:
        return [f"{painted(name, 'bold')}  {visible(text)}"]
    text = msgspec.json.format(text, indent=2)
    return [painted(name, "bold"), *(f"  {visible(line)}" for line in text.splitlines())]


def _history_lines(runs: list[dict[str, Any]]) -> list[str]:
    if not runs:
        return []
    lines = [f"  {local(run['ended_at'])}  {_run_words(run)}" for run in runs]
    return [painted("runs that were no success", "bold"), *map(visible, lines)]


def _run_words(run: dict[str, Any]) -> str:
    """A replay stands among the runs and is none: nobody ran, for no time."""
    reason = f": {run['reason']}" if run["reason"] else ""
    if not run["worker"] and not run["ran_seconds"]:
        return f"{run['outcome']}{reason}"
    return f"{run['outcome']} after {span(run['ran_seconds'])} on {run['worker'] or '?'}{reason}"


def counted(count: int, one: str, many: str = "") -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def when(moment: str | None) -> str | None:
    """In the reader's own zone, and how long that is from now."""
    if not moment:
        return None
    gone = age(moment)
    return f"{local(moment)} ({gone if gone.startswith('in ') else gone + ' ago'})"


def ran(job: Any) -> str:
    return "–" if job.get("ran_seconds") is None else span(job["ran_seconds"])


def compact(value: Any) -> str:
    if isinstance(value, dict) and {"done", "total"} <= value.keys():
        return f"{value['done']} of {value['total']}"
    return msgspec.json.encode(value).decode()


def details(found: dict[str, Any], now: datetime) -> list[str]:
    """What an explanation says beyond its reason; only what has a meaning for its state."""
    said = [f"help        {HELPS[found['reason']]}"] if found["reason"] in HELPS else []
    if found["position"] is not None and found["reason"] not in NOBODY_TO_RUN:
        beyond = "" if found["position_is_exact"] else " or further back"
        said.append(f"place       {found['position']}{beyond} among your own of this kind")
        said.append(f"tenants     about {found['tenants_ahead']} have their turn first")
        said.append(
            f"slots       {found['running']} of yours run, {found['fair_slots']:g} are fair"
        )
    if found["start"] is not None:
        first, likely, last = (
            span(max((datetime.fromisoformat(found["start"][name]) - now).total_seconds(), 0))
            for name in ("earliest_at", "likely_at", "latest_at")
        )
        said.append(f"start       in about {likely} ({first} to {last})")
    if found["share"] is not None:
        share = found["share"]
        got, due = share["received_slot_seconds"], share["entitled_slot_seconds"]
        of = f", {got / due:.0%} of it" if due >= LEAST_DUE else ""
        said.append(
            f"share       {got:.1f} slot-seconds of {due:.1f} due{of},"
            f" in the last {share['window_seconds']:.0f} s"
        )
    return said
