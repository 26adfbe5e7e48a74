"""`fairway jobs`: listed, shown, explained and cancelled, with whole ids."""

from __future__ import annotations

import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.api.house import House
from tests.cli.program import PROGRAM, Run, said, sentence

from fairway.cli.jobs import SOON_SECONDS


def test_jobs_are_listed_with_whole_ids(run: Run, job: str) -> None:
    table = run("jobs", "ls", "--state", "queued", "--type", "cli.work")
    assert (table.status, table.err) == (0, "")
    (line,) = [line for line in table.out.splitlines() if line.startswith(job)]
    assert line.split()[1:3] == ["cli.work", "queued"]
    whole = said(run("jobs", "list", "--limit", "1", "--json"))
    assert [one["id"] for one in whole["jobs"]] == [job]
    assert run("jobs", "list", "--type", "nobody.wrote").out == "No jobs.\n"


def test_a_job_is_shown_explained_and_cancelled(run: Run, job: str) -> None:
    assert said(run("jobs", "show", job, "-o", "json"))["id"] == job
    assert run("jobs", "show", job).out.startswith(f"{job}  cli.work  queued\n")
    why = run("jobs", "why", job)
    assert (why.status, why.err) == (0, "")
    first, help_, *rest = why.out.splitlines()
    assert first == "queued: No live worker runs this job type in this pool."
    assert help_.startswith("  help        `fairway worker module:app` starts one;")
    assert [line for line in rest if line.startswith(("  place", "  slots", "  start"))] == []
    assert said(run("jobs", "why", job, "--json"))["reason"] == "no_worker"
    assert run("jobs", "logs", job).out == "No lines.\n"
    assert run("jobs", "cancel", job).out == "cancelled\n"
    assert run("jobs", "why", job).out.splitlines()[0] == "cancelled: It has ended."
    assert "cancelled" in sentence(run("jobs", "cancel", job))
    assert run("jobs", "cancel", job, "--children").out == "cancelled\n"  # and what came of it


def test_who_follows_a_job_that_waits_is_told_why(run: Run, job: str) -> None:
    with ThreadPoolExecutor(1) as others:
        watching = others.submit(run, "jobs", "watch", job)
        time.sleep(SOON_SECONDS + 3)
        run("jobs", "cancel", job)
        first, why, help_, *_, last = watching.result().out.splitlines()
    assert "queued" in first
    assert why.strip() == "No live worker runs this job type in this pool."
    assert "`fairway worker module:app` starts one" in help_
    assert "cancelled" in last
    assert run("jobs", "explain", job).out.startswith("cancelled: It has ended.")


@pytest.mark.parametrize("command", ["show", "why", "cancel"])
@pytest.mark.parametrize("id_", ["nonsense", "ü%"])
def test_a_job_that_is_not_there(run: Run, command: str, id_: str) -> None:
    assert "There is no job" in sentence(run("jobs", command, id_))


def test_a_list_in_a_pipe_is_whole(run: Run, job: str) -> None:
    """`fairway jobs list | grep queued` must find it, however narrow the screen is."""
    for columns in ("", "50"):
        out = run("jobs", "list", COLUMNS=columns).out
        (line,) = [row for row in out.splitlines() if job in row]
        assert line.split()[1:3] == ["cli.work", "queued"]
        assert "short" in line


def test_many_are_cancelled_only_when_it_is_said_which(run: Run, job: str) -> None:
    assert sentence(run("jobs", "cancel-all")).startswith("Say which: a filter such as --type")
    assert run("jobs", "cancel-all", "--dry-run").out.startswith("This would cancel ")
    assert said(run("jobs", "show", job, "--json"))["state"] == "queued"
    refused = run("jobs", "cancel-all", "--type", "cli.work")
    assert (refused.status, job in refused.out) == (1, True)
    assert "Nobody can be asked here: say --yes" in refused.err
    assert said(run("jobs", "show", job, "--json"))["state"] == "queued"
    ended = run("jobs", "cancel-all", "--type", "cli.work", "--yes")
    assert ended.out.startswith("cancel "), ended
    assert ": done, " in ended.out, ended
    assert said(run("jobs", "show", job, "--json"))["state"] == "cancelled"
    assert run("jobs", "cancel-all", "--all", "--yes").out.endswith(": done, 0 of 0 done.\n")
    (first, *_) = said(run("bulk", "ls", "--json"))["actions"]
    assert run("bulk", "show", first["id"]).out.endswith(": done, 0 of 0 done.\n")
    assert "has ended already" in sentence(run("bulk", "abort", first["id"]))


def test_a_wrong_filter_is_named(run: Run) -> None:
    assert sentence(run("jobs", "list", "--state", "asleep")).startswith("--state: There is no")
    assert "limit" in sentence(run("jobs", "list", "--limit", "100000"))


def test_who_stops_waiting_for_a_job_hears_that_it_goes_on(
    house: House, acme: tuple[str, str], tmp_path: Path
) -> None:
    waiting = subprocess.Popen(
        [PROGRAM, "jobs", "submit", "cli.nobody-runs-it", "--wait"],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONUNBUFFERED": "1",
            "FAIRWAY_URL": house.url,
            "FAIRWAY_API_KEY": acme[1],
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert waiting.stdout is not None
    job = waiting.stdout.readline().split()[1]
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 130
    assert err == f"\nThe job goes on: `fairway jobs show {job}` shows it.\n"
