"""The command tree on one screen. Each command is a plain function, imported when it runs."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

try:
    from cyclopts import (
        App,
        CycloptsError,
        Group,
        MissingArgumentError,
        Parameter,
        UnusedCliTokensError,
    )
except ModuleNotFoundError as missing:
    if missing.name != "cyclopts":
        raise
    # `pip install fairway` brings the script too, for programs that only hand jobs in.
    raise SystemExit(
        "fairway: This is the SDK alone; the commands need pip install 'fairway[server]'."
    ) from None

from fairway.cli.terminal.help_text import HelpText


def _version() -> str:
    from importlib.metadata import version

    return version("fairway")


def _not_understood(error: CycloptsError) -> Any:
    """What is missing and words too many are named with where it says which there are."""
    from cyclopts import CycloptsPanel

    command = " ".join(("fairway", *(error.command_chain or ())))
    if isinstance(error, UnusedCliTokensError):
        words = ", ".join(map(repr, error.unused_tokens or ()))
        return CycloptsPanel(f"`{command}` does not know {words}: see `{command} --help`.")
    if missing := _missing(error):
        return CycloptsPanel(f"`{command}`: {missing}; see `{command} --help`.")
    return CycloptsPanel(error)


def _missing(error: CycloptsError) -> str:
    """Of what was not given, or was named and not said; empty: it is about something else."""
    if type(error) is not MissingArgumentError or (argument := error.argument) is None:
        return ""
    named = error.keyword or next((token.keyword for token in argument.tokens), None)
    if named is not None:
        return f"{named} needs a value" if argument.token_count()[0] == 1 else ""
    is_placed = argument.field_info.is_positional
    return f"{argument.name.lstrip('-').upper() if is_placed else argument.name} is required"


app = App(
    name="fairway",
    version=_version,
    error_formatter=_not_understood,
    help_formatter=HelpText(),
    help_format="plaintext",  # markdown would cost a parser at every start
    default_parameter=Parameter(negative_iterable=()),  # nobody needs an --empty-pool
    help="Accept now, process later, at each tenant's fair share of worker time.",
)

START = Group("Start", sort_key=1)
LOOK = Group("Look after your jobs", sort_key=2)
OPERATE = Group("Look after the platform", sort_key=3)
MEASURE = Group("Measure", sort_key=4)

#: Imported when they run: what each is for must be said here.
COMMANDS: dict[Group, dict[str, tuple[str, str]]] = {
    START: {
        "up": (
            "cli.processes.up:up",
            "Start everything: PostgreSQL, server and workers. Ctrl-C drains and stops.",
        ),
        "server": (
            "cli.processes.server_command:server",
            "Start a server on an existing PostgreSQL (FAIRWAY_DATABASE_URL). Start as many as"
            " you like.",
        ),
        "worker": ("cli.processes.work:app", "Run an app's jobs; or look after workers that run."),
        "fleet": (
            "cli.processes.fleet:fleet",
            "Keep as many workers on this machine as the autoscaler wants.",
        ),
        "postgres": (
            "cli.processes.postgres:postgres",
            "Start the embedded PostgreSQL alone and print where to connect. Ctrl-C stops it.",
        ),
    },
    LOOK: {
        "jobs": (
            "cli.jobs:app",
            "Hand one in, look, follow, ask why one waits, move or cancel.",
        ),
        "flows": (
            "cli.flows:app",
            "Chains and groups of jobs: look, cancel, replay what failed.",
        ),
        "dead": ("cli.dead:app", "Look at dead letters, replay or discard them."),
        "bulk": ("cli.bulk:app", "Acts on many jobs, and how far each has come."),
        "schedules": (
            "cli.schedules:app",
            "Recurring schedules: make, look, pause, run now, make up.",
        ),
        "webhooks": (
            "cli.webhooks:app",
            "Events sent to receivers of your own: make, try out, replay.",
        ),
        "limits": (
            "cli.tenants:limits",
            "What this tenant may do, how much is used, what was refused.",
        ),
        "usage": ("cli.billing:usage", "What a tenant used, by period; its statements."),
        "events": (
            "cli.events:app",
            "What happened on this tenant's account: look, follow.",
        ),
        "restraints": ("cli.dead:restraints", "Circuits and quarantines in force."),
    },
    OPERATE: {
        "dashboard": (
            "cli.dashboard:dashboard",
            "Print a link that signs your browser in to the dashboard, once.",
        ),
        "top": (
            "cli.top:top",
            "Pools, rates, ages and alarms live in this terminal, until q or Ctrl-C.",
        ),
        "shards": (
            "cli.servers:app",
            "Who owns which shard; more shards; a tenant to another (operator).",
        ),
        "alarms": ("cli.alarms:app", "What is wrong, what was, and where alarms are sent."),
        "marks": ("cli.marks:app", "Deploys, incidents and notes beside graphs: look, add."),
        "servers": ("cli.servers:servers", "Servers, with the shards that each owns."),
        "doctor": ("cli.doctor:doctor", "What is wrong now, the worst first, and what helps."),
        "check": (
            "cli.database.check:check",
            "Say what is wrong with the settings and the database, and what to do. Exit 1 on"
            " errors.",
        ),
        "init": (
            "cli.database.founding:init",
            "Make your own PostgreSQL ready, and the first operator's key, which is printed once.",
        ),
        "autoscale": (
            "cli.autoscale:app",
            "How many workers pools should have, why, and saying otherwise.",
        ),
        "region": (
            "cli.regions:app",
            "Several regions: who is there, whose home is where, failover and failback.",
        ),
        "migrate": (
            "cli.database.migrations:migrate",
            "Bring the database to the schema of this version; --plan says what that takes.",
        ),
        "backup": (
            "cli.database.backups:backup",
            "Copy the platform into a folder, while it runs.",
        ),
        "restore": (
            "cli.database.backups:restore",
            "Make a platform from a backup, where there is none.",
        ),
        "tenants": ("cli.tenants:app", "List, add, change, suspend and delete tenants."),
        "tiers": ("cli.tenants:tiers", "All tiers and what their tenants are entitled to."),
        "keys": ("cli.keys:app", "List, make and revoke keys of tenants and workers."),
        "operator-key": (
            "cli.database.founding:operator_key",
            "Make a key for operators on your own PostgreSQL (FAIRWAY_DATABASE_URL) and print it,"
            " once.",
        ),
        "sql-login": (
            "cli.database.founding:sql_login",
            "Let a login of your PostgreSQL hand in a tenant's jobs with its transactions.",
        ),
        "pause": ("cli.operators:pause", "Keep jobs of a tenant, type or pool from starting."),
        "resume": ("cli.operators:resume", "End a pause."),
        "pauses": ("cli.operators:pauses", "What is paused."),
        "pools": ("cli.operators:pools", "Every pool there is."),
        "types": ("cli.operators:types", "Job types, as declared and as measured."),
        "audit": ("cli.operators:audit", "Who changed what."),
        "prices": ("cli.billing:prices", "The price list; add a price that is to come."),
        "spend-cap": ("cli.billing:spend_cap", "What a tenant may spend in a month."),
        "profiles": ("cli.profiles:app", "Platforms by name, for --profile."),
    },
    # What measures is above all of this; servers and workers never load it.
    MEASURE: {
        "bench": (
            "bench.commands:app",
            "Measure this machine with this version; ratios within one run.",
        ),
        "lab": ("lab.commands:app", "Experiments through the front door, with plots and a page."),
        "simulate": (
            "simulate.commands:app",
            "The scheduler in virtual time: a fleet of 2 billion jobs a day, and what-ifs.",
        ),
    },
}
for _group, _commands in COMMANDS.items():
    for _name, (_target, _help) in _commands.items():
        app.command(f"fairway.{_target}", name=_name, help=_help, group=_group)
#: What `up` and `server` start for themselves; nobody types it.
app.command("fairway.cli.processes.up_server:up_server", name="up-server", show=False)
app.command(
    "fairway.cli.processes.server_command:server_process", name="server-process", show=False
)
app.register_install_completion_command(help="Let your shell complete these commands.")


#: Commands without words of their own below them, which list when they are called alone.
LISTS = frozenset(
    {
        *("alarms", "audit", "limits", "pauses", "pools", "prices"),
        *("restraints", "servers", "tiers", "types", "usage"),
    }
)
SAID_MAX = 500
INTERRUPTED = 130  # what a shell expects after Ctrl-C


PIPE_CLOSED = 141  # as if by SIGPIPE: who read along has seen enough


def main() -> None:
    """Entry point: errors are sentences, not stacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter is no mistake
            stream.reconfigure(errors="backslashreplace")
    status = _status()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = _let_go_of_the_pipe()
    if "obstore" in sys.modules:
        _leave_at_once(status)
    sys.exit(status)


def _let_go_of_the_pipe() -> int:
    """`fairway jobs ls | head`: what is left goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _status() -> int | str | None:
    try:
        return app(without_ls(sys.argv[1:])) or 0
    except BrokenPipeError:
        return _let_go_of_the_pipe()
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as ended:
        return ended.code
    except Exception as error:
        return sentence_of(error)


def without_ls(words: list[str]) -> list[str]:
    """Commands that only list take the `ls` that the others have."""
    if len(words) > 1 and words[0] in LISTS and words[1] in {"ls", "list"}:
        return [words[0], *words[2:]]
    return words


def sentence_of(error: Exception) -> str:
    """What went wrong, for whoever typed the command."""
    from fairway.core.errors import FairwayError

    if isinstance(error, FairwayError):
        return f"fairway: {error.message}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"fairway: {error.filename}: {error.strerror}."
    return _unexpected(error)


def _unexpected(error: Exception) -> str:
    """A mistake of ours, most likely: a sentence for who sees it, the stack for who mends it."""
    import tempfile
    import traceback

    from fairway.core.redaction import USUAL, without_rows

    said = " ".join(USUAL.text(without_rows(str(error))).split())[:SAID_MAX]
    words = f"fairway: {type(error).__name__}: {said or 'no more was said'}."
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="fairway-", suffix=".txt", delete=False
        ) as file:
            stack = "".join(traceback.format_exception(error))
            file.write(USUAL.text(without_rows(stack)))  # people send it to others
    except OSError:
        return words
    return f"{words} This should have been told better; the stack is in {file.name}."


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
