"""The command tree on one screen. Each command is a plain function; imports happen when it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

try:
    from cyclopts import App, Parameter
except ModuleNotFoundError as missing:
    if missing.name != "cyclopts":
        raise
    # `pip install fairway` brings the script too, for programs that only hand jobs in.
    raise SystemExit(
        "fairway: This is the SDK alone; the commands need pip install 'fairway[server]'."
    ) from None


def _version() -> str:
    from importlib.metadata import version

    return version("fairway")


app = App(
    name="fairway",
    version=_version,
    help_format="plaintext",  # markdown would cost a parser at every start
    help="Accept now, process later, at each tenant's fair share of worker time.",
)
workers = App(name="worker", help="Run an app's jobs; or look after workers that run.")
app.command(workers)

#: Commands of other files, imported when they run: what each is for must be said here.
ELSEWHERE = {
    "jobs": ("jobs:app", "Look at jobs, ask why one waits, cancel one."),
    "dead": ("dead:app", "Look at dead letters, replay or discard them."),
    "schedules": ("schedules:app", "Recurring schedules: make, look, pause, run now, make up."),
    "limits": ("tenants:limits", "What this tenant may do, how much is used, what was refused."),
    "events": ("dead:events", "What the platform did on this tenant's account, newest first."),
    "restraints": ("dead:restraints", "Circuits, quarantines and throttles in force."),
    "pause": ("tenants:pause", "Keep jobs of a tenant, type or pool from starting."),
    "resume": ("tenants:resume", "End a pause."),
    "tenants": ("tenants:app", "Add and change tenants (operator)."),
    "tiers": ("tenants:tiers", "All tiers and what their tenants are entitled to (operator)."),
}
for _name, (_target, _help) in ELSEWHERE.items():
    app.command(f"fairway.cli.{_target}", name=_name, help=_help)
#: What measures is above all of this; servers and workers never load it.
app.command(
    "fairway.bench.commands:app", name="bench",
    help="Measure this machine with this version; ratios within one run.",
)  # fmt: skip
app.command(
    "fairway.lab.commands:app", name="lab",
    help="Experiments through the front door, with plots and a page.",
)  # fmt: skip
workers.command("fairway.cli.workers:ls", name="ls", help="The live workers and what they do.")
workers.command("fairway.cli.workers:drain", name="drain", help="Let one finish and leave.")


@app.command
def up(
    *targets: str,
    beside: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    port: int | None = None,
    host: str | None = None,
    data_dir: Path | None = None,
    worker: bool = True,
) -> int:
    """Start everything: PostgreSQL, server and workers. Ctrl-C drains and stops.

    Parameters
    ----------
    targets
        The apps whose jobs run here, each as module:app or file.py:app; a worker for each.
    beside
        Programs to keep running beside the server, each as a module for `python -m`.
    port
        Where the server listens (default 8700).
    host
        The address it listens on (default 127.0.0.1).
    data_dir
        Where all state lives (default .fairway).
    worker
        Start workers too.
    """
    from fairway.cli import up as command

    apps = targets if worker else ()
    return command.run(apps, beside or (), port=port, host=host, data_dir=data_dir)


@app.command
def server(
    *,
    port: int | None = None,
    host: str | None = None,
    database_url: str | None = None,
    advertised_url: str | None = None,
) -> int:
    """Start one server on an existing PostgreSQL (FAIRWAY_DATABASE_URL). Start as many as you like.

    Parameters
    ----------
    database_url
        postgresql://… of a database that Fairway may use for itself.
    advertised_url
        How other servers reach this one.
    """
    from fairway.cli import serve as command

    return command.run(
        port=port, host=host, database_url=database_url, advertised_url=advertised_url
    )


@workers.default
def worker(
    target: Annotated[str, Parameter(show_default=False)] = "",
    *,
    pool: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    slots: int | None = None,
    url: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    name: str | None = None,
    grace: float = 25.0,
    limit: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    cgroup: str | None = None,
    journal: Path | None = None,
    label: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    warm: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
) -> int:
    """Run an app's jobs. SIGTERM or Ctrl-C finishes or hands back what runs, then exits 0.

    Parameters
    ----------
    target
        The app, as module:app or file.py:app.
    pool
        Pools to serve, each as name or name=slots (default: short, medium and long).
    slots
        Slots in each pool that was named without a number.
    url
        Servers to talk to (default FAIRWAY_URL, else what `fairway up` left here).
    name
        The worker's name in logs and lists (default: host and process id).
    grace
        Seconds that running jobs get to finish after SIGTERM.
    limit
        The most that any job in a process of its own may use: memory=1GB, cpu=10m, file_size=1GB,
        open_files=256, processes=512 (the default). A job type may declare less.
    cgroup
        Make control groups below this one (default FAIRWAY_CGROUP, else one that is delegated).
    journal
        The folder of the outcome journal (default: journal in the data folder).
    label
        What this machine has, such as gpu; some pools ask for labels.
    warm
        What is ready here (images, models): job types with that warm_key are preferred.
    """
    from fairway.cli import work as command

    return command.run(
        target,
        pools=pool,
        slots=slots,
        urls=url,
        name=name,
        grace_seconds=grace,
        limits=limit,
        cgroup=cgroup,
        journal=journal,
        labels=label,
        warm_keys=warm,
    )


@app.command
def postgres(*, data_dir: Path | None = None) -> int:
    """Start the embedded PostgreSQL alone and print where to connect. Ctrl-C stops it.

    Parameters
    ----------
    data_dir
        Where its data lives (default .fairway); not that of a running `fairway up`.
    """
    from fairway.cli import postgres as command

    return command.run(data_dir=data_dir)


@app.command
def check(*, database_url: str | None = None, data_dir: Path | None = None) -> int:
    """Say what is wrong with the settings and the database, and what to do. Exit 1 on errors."""
    from fairway.cli import check as command

    return command.run(database_url=database_url, data_dir=data_dir)


@app.command
def operator_key(*, database_url: str | None = None) -> int:
    """Make a key for operators on your own PostgreSQL (FAIRWAY_DATABASE_URL) and print it, once."""
    from fairway.cli import keys as command

    return command.run(database_url=database_url)


INTERRUPTED = 130  # what a shell expects after Ctrl-C


def main() -> None:
    """Entry point: errors are sentences, not stacks."""
    from fairway.core.errors import FairwayError

    status: int | str | None
    try:
        status = app() or 0
    except FairwayError as error:
        status = f"fairway: {error.message}"
    except OSError as error:
        if error.filename is None:
            raise  # not about a file that somebody named: a mistake of ours
        status = f"fairway: {error.filename}: {error.strerror}."
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as ended:
        status = ended.code
    if "obstore" in sys.modules:
        _leave_at_once(status)
    sys.exit(status)


def _leave_at_once(status: int | str | None) -> None:
    """End the process and leave the interpreter as it is.

    Threads of the object storage's library may be about to take its lock; if it were torn down
    under them, they would abort a program that has done its work.
    """
    if isinstance(status, str):
        print(status, file=sys.stderr)  # noqa: T201  # as `sys.exit` would
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)
