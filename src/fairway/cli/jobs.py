"""`fairway jobs …`: look at jobs, ask why one waits, cancel one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cyclopts import App

from fairway.cli.remote import Json, Remote, screen, show_json, show_list, table
from fairway.core.errors import InvalidRequest

app = App(name="jobs", help="Look at jobs, ask why one waits, cancel one.")


@app.command(name="list")
def list_(
    *, state: str | None = None, type: str | None = None, limit: int = 20, json: Json = False
) -> None:
    """The newest jobs, of these states (comma-separated) and this type."""
    found = Remote("tenant").get("/v1/jobs", state=state, type=type, limit=limit)
    rows = [
        (
            job["id"],
            job["type"],
            job["pool"],
            job["state"],
            str(job["attempts"]),
            job["created_at"][:19],
        )
        for job in found["jobs"]
    ]
    lines = table(("id", "type", "pool", "state", "attempts", "created"), rows)
    show_list(found, lines, "No jobs.", json=json)


@app.command
def show(id: str) -> None:
    """One job, whole, as JSON."""
    show_json(Remote("tenant").get(f"/v1/jobs/{id}"))


@app.command
def cancel(id: str) -> None:
    """Cancel a job: at once while it waits, else its worker is asked to stop."""
    job = Remote("tenant").call("DELETE", f"/v1/jobs/{id}")
    screen.print(job["state"] if job["finished_at"] else "It runs; its worker was asked to stop.")


@app.command
def cancel_all(
    *,
    all: bool = False,
    state: str | None = None,
    type: str | None = None,
    pool: str | None = None,
    since: str | None = None,
    until: str | None = None,
    dry_run: bool = False,
) -> None:
    """Cancel every job that has not ended and matches; with --dry-run, only count them.

    Parameters
    ----------
    all
        Every job that has not ended; needed when no filter is given.
    """
    query = {"state": state, "type": type, "pool": pool, "since": since, "until": until}
    if not (all or dry_run or any(query.values())):
        raise InvalidRequest("Say which: a filter such as --type, or --all.")
    remote, cancelled, asked = Remote("tenant"), 0, 0
    while True:
        done = remote.call("POST", "/v1/jobs/cancel", {"dry_run": dry_run, "all": all}, query)
        cancelled, asked = cancelled + done["cancelled"], asked + done["asked_to_stop"]
        query["cursor"] = done["next_cursor"]
        if query["cursor"] is None:
            break
    if dry_run:
        screen.print(f"{done['matched']} jobs match.")
    else:
        screen.print(f"{cancelled} cancelled, {asked} asked to stop.")


@app.command
def why(id: str, *, json: Json = False) -> None:
    """Say why a job waits, its place in line and when it may start."""
    found = Remote("tenant").get(f"/v1/jobs/{id}/explain")
    if json:
        show_json(found)
        return
    screen.print(f"[bold]{found['state']}[/]: {found['detail']}")
    for line in details(found, datetime.now(UTC)):
        screen.print(f"  {line}")


def details(found: dict[str, Any], now: datetime) -> list[str]:
    """What an explanation says beyond its reason; only what has a meaning for its state."""
    said = []
    if found["position"] is not None:
        beyond = "" if found["position_is_exact"] else " or further back"
        said.append(f"place       {found['position']}{beyond} among your own of this kind")
        said.append(f"tenants     about {found['tenants_ahead']} have their turn first")
        said.append(
            f"slots       {found['running']} of yours run, {found['fair_slots']:g} are fair"
        )
    if found["start"] is not None:
        first, likely, last = (
            _in_seconds(found["start"][name], now)
            for name in ("earliest_at", "likely_at", "latest_at")
        )
        said.append(f"start       in about {likely} ({first} to {last})")
    if found["share"] is not None:
        share = found["share"]
        got, due = share["received_slot_seconds"], share["entitled_slot_seconds"]
        of = f", {got / due:.0%} of it" if due else ""
        said.append(
            f"share       {got:.1f} slot-seconds of {due:.1f} due{of},"
            f" in the last {share['window_seconds']:.0f} s"
        )
    return said


def _in_seconds(moment: str, now: datetime) -> str:
    seconds = max((datetime.fromisoformat(moment) - now).total_seconds(), 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
