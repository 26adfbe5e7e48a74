"""`fairway simulate`: a tiny fleet, a scenario, a replay and the sheet, through the command."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from fairway import FairwayError
from fairway.lab.measure.figures import Story
from fairway.lab.scenario import faster, load
from fairway.simulate import agreement, capacity
from fairway.simulate.commands import app
from fairway.simulate.contention import Shares
from fairway.simulate.design import Design
from fairway.simulate.hour import simulate_hour
from fairway.simulate.hour_report import figures
from fairway.simulate.played import Play

SHARES = Shares(1.0, 1.0, 0.0)
TINY = ["--shards", "4096", "--minutes", "2"]


def run(*words: str) -> int:
    status = app(list(words), exit_on_error=False, result_action="return_value")
    return int(status or 0)


def test_a_tiny_fleet_writes_one_page_that_needs_nothing_else(tmp_path: Path) -> None:
    assert run(*TINY, "--out", str(tmp_path)) in (0, 1)
    page = (tmp_path / "simulate.html").read_text("utf-8")
    assert "One shard of 4096 was simulated" in page
    assert "Waits, from acceptance" in page
    assert page.count("<svg") == 2
    assert not re.search(r"""<(script|link|img)|(src|href)=["']https?:|@import""", page)
    found = msgspec.json.decode((tmp_path / "simulate.json").read_bytes())
    assert found["accepted"] == found["ends"]["succeeded"] + found["unfinished"]


def test_the_same_seed_gives_the_same_figures_with_and_without_an_autoscaler() -> None:
    for autoscale in (True, False):
        one, other = (
            figures(simulate_hour(Design(shards=8192, seconds=60.0), autoscale=autoscale), SHARES)
            for _ in range(2)
        )
        assert one == other
    assert one["waits"]["short"]["p99"] < 0.5


def test_a_size_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(FairwayError, match="above 0"):
        run("--shards", "0")


def test_a_change_of_nothing_that_was_recorded_is_refused_before_it_takes_minutes() -> None:
    with pytest.raises(FairwayError, match="--from"):
        run("--weight", "acme=3")


def test_a_scenario_of_the_lab_in_virtual_time(tmp_path: Path) -> None:
    assert run("--scenario", "worker-loss", "--out", str(tmp_path)) == 0
    found = msgspec.json.decode((tmp_path / "simulate-worker-loss.json").read_bytes())
    assert found["lost"] == 0
    assert found["verdict"] == "held"


def test_what_goes_wrong_in_the_lab_goes_wrong_here() -> None:
    scenario = faster(load("dependency-outage"), 2)
    play = Play(scenario, 1)
    stories = play.run()
    assert [story for story in stories if story.finished is None] == []
    assert 1 < play.amplification()["payments/amplification"] < 1.2


def test_a_replay_says_who_gains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "usage.jsonl"
    jobs = [
        {"at": n / 10, "tenant": tenant, "seconds": 1.0}
        for tenant in ("acme", "globex")
        for n in range(40)
    ]
    file.write_bytes(b"\n".join(map(msgspec.json.encode, jobs)))
    words = ("--from", str(file), "--weight", "acme=300", "--slots", "short=4")
    assert run(*words, "--out", str(tmp_path)) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].split()[:2] == ["acme", "gains"]
    assert told[2].split()[:2] == ["globex", "loses"]


def test_the_sheet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--capacity") == 0
    assert "23,148" in capsys.readouterr().out
    assert capacity.nodes() >= 1 < capacity.servers()


def test_agreement_is_a_matter_of_waits_and_shares() -> None:
    def story(group: str, started: float, finished: float) -> Story:
        return Story(group, 0, "work", "short", 0.0, 0.0, started, finished, "succeeded", 1)

    real = [story("a", 1.0, 3.0), story("b", 2.0, 4.0)]
    assert max(one.distance for one in agreement.compare(real, real, (0, 10))) == 0
    other = [story("a", 1.1, 3.1), story("b", 2.0, 4.0)]
    found = {one.name: one.distance for one in agreement.compare(real, other, (0, 10))}
    assert found["a: wait mean"] == pytest.approx(0.1)
    assert found["b: share"] == 0


@pytest.mark.slow
def test_the_simulator_agrees_with_real_processes(tmp_path: Path) -> None:
    """Waits and shares within 5 %; on a busy machine it is unjudged (3), and says nothing."""
    assert run("--against-real", "--out", str(tmp_path)) in (0, 3)
