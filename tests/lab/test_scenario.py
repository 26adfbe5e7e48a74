"""Scenario files: those of the lab are right, a wrong one says where; figures by path."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from fairway import FairwayError
from fairway.lab.experiments.fleet import arrivals
from fairway.lab.experiments.fleet_report import said_once, told
from fairway.lab.measure.figures import Bound, Story, bound, figures
from fairway.lab.scenario import faster, load, names

WANTED = {
    "mix",
    "noisy-neighbour",
    "herd",
    "dependency-outage",
    "poison-type",
    "worker-loss",
}


def test_every_scenario_of_the_lab_can_be_read() -> None:
    assert set(names()) >= WANTED
    for name in names():
        scenario = load(name)
        assert scenario.name == name
        assert all(one.says for one in scenario.expect)
        assert scenario.expect
        groups = {group.name for group in scenario.tenants}
        assert all(one.group in groups for one in scenario.happenings if one.what == "burst")
        assert all(window.start < window.end for window in scenario.windows)


def test_a_word_that_is_not_known_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ncolour = "red"\n')
    with pytest.raises(FairwayError, match="colour"):
        load(str(file))
    with pytest.raises(FairwayError, match="there are dependency-outage"):
        load("nothing")
    with pytest.raises(FairwayError, match="no file"):
        load(str(tmp_path / "absent.toml"))


def test_the_mix_has_its_shares_and_its_skew() -> None:
    scenario = load("mix")
    planned = arrivals(faster(scenario, 0.1), seed=1)  # ten times as long: shares come out
    kinds = [one.kind.pool for one in planned]
    assert abs(kinds.count("short") / len(kinds) - 0.90) < 0.01
    assert abs(kinds.count("medium") / len(kinds) - 0.09) < 0.01
    loads = [sum(one.tenant == number for one in planned) for number in (0, 99)]
    assert loads[0] > 20 * loads[1]
    assert planned == arrivals(faster(scenario, 0.1), seed=1)
    assert planned != arrivals(faster(scenario, 0.1), seed=2)


def test_groups_of_the_same_rate_do_not_march_in_step() -> None:
    planned = arrivals(load("dependency-outage"), seed=1)
    assert len({one.at for one in planned}) == len(planned)
    assert {one.group for one in planned} == {"payers", "others"}


def test_faster_keeps_the_work_and_shortens_the_time() -> None:
    scenario, quick = load("noisy-neighbour"), faster(load("noisy-neighbour"), 10)
    assert quick.seconds == scenario.seconds / 10
    assert quick.happenings[0].at == scenario.happenings[0].at / 10
    for slow, fast in zip(scenario.tenants, quick.tenants, strict=True):
        work = slow.per_second * slow.jobs[0].seconds
        assert fast.per_second * fast.jobs[0].seconds == pytest.approx(work)


def story(**changes: Any) -> Story:
    made = Story("a", 0, "lab.short", "short", 1.0, 1.1, 1.2, 2.0, "succeeded", 1)
    return made._replace(**changes)


def test_figures_go_by_window_group_and_pool() -> None:
    stories = [
        story(),
        story(intended=5.0, accepted=5.0, started=6.0, finished=7.0),
        story(group="b", pool="long", started=None, finished=None, state="running"),
    ]
    found = figures(stories, {"late": (4.0, 9.0)})
    assert found["all/all/all/jobs"] == 3
    assert found["all/all/all/lost"] == 1
    assert found["all/a/short/pickup_p99_s"] == pytest.approx(1.0)
    assert found["late/a/short/latency_p50_s"] == pytest.approx(2.0)
    assert found["all/b/long/lost"] == 1
    assert math.isnan(found["all/b/long/pickup_p50_s"])


def test_a_bound_on_a_figure_or_on_a_ratio_holds_or_does_not() -> None:
    found = {"a": 2.0, "b": 1.0}
    assert bound(found, "a", "", 2.0, None).holds
    assert not bound(found, "a", "", 1.9, None).holds
    assert bound(found, "a", "b", 2.5, 1.5).holds
    assert not bound(found, "a", "b", None, 3.0).holds
    assert not bound(found, "missing", "", 1.0, None).holds  # a figure that is not there is no pass


def test_what_did_not_hold_is_said_in_words() -> None:
    names = ["the others' time to the end ÷ before", "the others' wait", "jobs that died"]
    bounds = [
        Bound("noisy/a/b/latency_p99_s ÷ quiet/a/b/latency_p99_s", 2.06, 2.0, None),
        Bound("noisy/a/b/pickup_p99_s", 1.18, 0.5, None),
        Bound("all/all/all/dead", 0.0, 0.0, None),
    ]
    assert told(names, bounds) == (
        "the others' time to the end ÷ before was 2.06 ×, and ≤ 2 × was asked;"
        " the others' wait was 1.18 s, and ≤ 500 ms was asked"
    )
    assert told(names[2:], bounds[2:]) == "all that was expected held"


def test_a_row_is_not_said_twice() -> None:
    paths = {"all/all/all", "all/all/short", "all/a/all", "all/a/short", "all/b/all", "all/b/short"}
    quiet = {"quiet/all/all", "quiet/all/short", "quiet/a/all", "quiet/a/short"}
    assert said_once(paths | quiet) == [
        "all/a/short",
        "all/all/short",
        "all/b/short",
        "quiet/a/short",
    ]
    several = {"all/all/all", "all/all/long", "all/all/short"}
    assert several <= set(said_once({*several, "all/a/long", "all/b/short"}))
