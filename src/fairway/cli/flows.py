"""`fairway flows …`: chains and groups, seen and acted upon as one. Needs a tenant's key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter

from fairway.cli.jobs import COLUMNS as JOBS
from fairway.cli.remote import MINE, Whose
from fairway.cli.terminal.job_text import counted, error_lines, when
from fairway.cli.terminal.list_filters import Since, Until, check_limit, query_of
from fairway.cli.terminal.moments import age
from fairway.cli.terminal.output import Column, Record, Yes, agreed, painted

app = App(name="flows", help="Chains and groups of jobs: look, cancel, replay what failed.")

PATH = "/v1/flows/"

COLUMNS = (
    Column("id", "id"),
    Column("kind", "kind"),
    Column("state", "state"),
    Column("age", lambda flow: age(flow["created_at"])),
    Column("succeeded", lambda flow: f"{flow['succeeded']} of {flow['total']}"),
    Column("failed", "failed"),
    Column("cancelled", "cancelled", "spare"),
    Column("failed job", "failed_job", "spare"),
)


@Parameter(name="*")
@dataclass(frozen=True)
class FlowChoice:
    """Which flows: what is not given does not narrow."""

    state: Annotated[
        str | None,
        Parameter(help="Some of running, succeeded, failed, cancelled, with commas between."),
    ] = None
    kind: Annotated[str | None, Parameter(help="group or chain.")] = None
    since: Since = None
    until: Until = None


ALL = FlowChoice()


@app.command(name=("ls", "list"))
def list_(*, which: FlowChoice = ALL, limit: int = 20, options: Whose = MINE) -> None:
    """The newest flows that these filters match.

    Parameters
    ----------
    limit
        So many at most.
    """
    check_limit(limit)
    found = options.tenant().pages("/v1/flows", "flows", limit, **query_of(which))
    options.rows({"flows": found}, found, COLUMNS, "No flows.")


@app.command
def show(id: str, *, options: Whose = MINE) -> None:
    """One flow: its state, how many of its jobs ended how, and what went wrong last."""
    flow = options.tenant().get(PATH + id)
    options.record(flow, lambda: "\n".join(told(flow)))


@app.command
def jobs(id: str, *, limit: int = 20, options: Whose = MINE) -> None:
    """The jobs of a flow, the last of them first; its callback is none of them.

    Parameters
    ----------
    limit
        So many at most.
    """
    check_limit(limit)
    found = options.tenant().pages(f"{PATH}{id}/jobs", "jobs", limit)
    options.rows({"jobs": found}, found, JOBS, "No jobs.")


@app.command
def cancel(id: str, *, yes: Yes = False, options: Whose = MINE) -> None:
    """Cancel a flow: its callback, and every job that has not ended. Counts them, and asks."""
    remote = options.tenant()
    if not yes:
        flow = remote.get(PATH + id)
        _ask(flow, "cancels", live_of(flow), "job", "unless that has ended")
    done = remote.call("DELETE", PATH + id)
    still = live_of(done)
    rest = f" {counted(still, 'job')} still to end: what runs was asked to stop." if still else ""
    options.record(done, f"{done['state']}, {done['cancelled']} cancelled.{rest}")


@app.command
def replay(id: str, *, yes: Yes = False, options: Whose = MINE) -> None:
    """Put the dead letters of a flow back into the queue; it goes on. Counts them, and asks."""
    remote = options.tenant()
    if not yes:
        flow = remote.get(PATH + id)
        _ask(flow, "replays", flow["failed"], "dead letter", "if that is dead")
    done = remote.call("POST", f"{PATH}{id}/replay")
    options.record({"id": id, **done}, f"{counted(done['replayed'], 'job')} put back.")


def told(flow: dict[str, Any]) -> list[str]:
    """A flow as a person reads it."""
    waits_for = {"succeeded": "all have succeeded", "ended": "all have ended, however"}
    facts = {
        "jobs": _counts(flow),
        "complete": None if flow["complete"] else "no: more jobs are to be added",
        "callback": flow["callback"] and f"{flow['callback']}, when {waits_for[flow['on_all']]}",
        "created": when(flow["created_at"]),
        "finished": when(flow["finished_at"]),
        "failed job": flow["failed_job"],
    }
    return [
        f"{painted(flow['id'], 'bold')}  {flow['kind']}  {painted(flow['state'], 'bold')}",
        *(f"  {name:<12}{text}" for name, text in facts.items() if text),
        *error_lines(flow),
    ]


def live_of(flow: Record) -> int:
    """How many of its jobs have not ended."""
    ended: int = flow["succeeded"] + flow["failed"] + flow["cancelled"]
    return int(flow["total"]) - ended


def _counts(flow: Record) -> str:
    ends = {name: flow[name] for name in ("succeeded", "failed", "cancelled")}
    said = [f"{count} {name}" for name, count in ends.items() if count]
    return ", ".join([f"{flow['total']} in all", *said])


def _ask(flow: Record, acts: str, count: int, what: str, callback_if: str) -> None:
    """Nobody is asked about nothing."""
    parts = [counted(count, what)] if count else []
    parts += [f"its callback {callback_if}"] if flow["callback"] else []
    if parts:
        agreed(f"This {acts} {' and '.join(parts)} of {flow['kind']} {flow['id']}.", yes=False)
