"""The command tree on one screen. Each command is a plain function, imported when it runs."""

from __future__ import annotations

import os
import sys

try:
    from cyclopts import App
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

#: Imported when they run: what each is for must be said here.
COMMANDS = {
    "up": (
        "cli.up:up",
        "Start everything: PostgreSQL, server and workers. Ctrl-C drains and stops.",
    ),
    "server": (
        "cli.serve:server",
        "Start one server on an existing PostgreSQL (FAIRWAY_DATABASE_URL). Start as many as you"
        " like.",
    ),
    "worker": ("cli.work:app", "Run an app's jobs; or look after workers that run."),
    "postgres": (
        "cli.postgres:postgres",
        "Start the embedded PostgreSQL alone and print where to connect. Ctrl-C stops it.",
    ),
    "check": (
        "cli.check:check",
        "Say what is wrong with the settings and the database, and what to do. Exit 1 on errors.",
    ),
    "operator-key": (
        "cli.keys:operator_key",
        "Make a key for operators on your own PostgreSQL (FAIRWAY_DATABASE_URL) and print it,"
        " once.",
    ),
    "sql-login": (
        "cli.sql_login:sql_login",
        "Let a login of your PostgreSQL hand in a tenant's jobs with its transactions.",
    ),
    "jobs": ("cli.jobs:app", "Look at jobs, ask why one waits, cancel one."),
    "dead": ("cli.dead:app", "Look at dead letters, replay or discard them."),
    "schedules": ("cli.schedules:app", "Recurring schedules: make, look, pause, run now, make up."),
    "limits": (
        "cli.tenants:limits",
        "What this tenant may do, how much is used, what was refused.",
    ),
    "events": ("cli.dead:events", "What the platform did on this tenant's account, newest first."),
    "restraints": ("cli.dead:restraints", "Circuits, quarantines and throttles in force."),
    "pause": ("cli.tenants:pause", "Keep jobs of a tenant, type or pool from starting."),
    "resume": ("cli.tenants:resume", "End a pause."),
    "tenants": ("cli.tenants:app", "Add and change tenants (operator)."),
    "tiers": ("cli.tenants:tiers", "All tiers and what their tenants are entitled to (operator)."),
    # What measures is above all of this; servers and workers never load it.
    "bench": (
        "bench.commands:app",
        "Measure this machine with this version; ratios within one run.",
    ),
    "lab": ("lab.commands:app", "Experiments through the front door, with plots and a page."),
}
for _name, (_target, _help) in COMMANDS.items():
    app.command(f"fairway.{_target}", name=_name, help=_help)


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
