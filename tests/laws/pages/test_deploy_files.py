"""What is in `deploy/` is made from the code, names only metrics that there are, and works.

promtool is Debian's package `prometheus`; where it is not installed, its part is left out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.laws.pages import deploy_files

from fairway.core.insight.alarms import ALARMS
from fairway.core.insight.prometheus_rules import EXPRESSIONS, alert_name, rules
from fairway.runtime.telemetry import Metrics
from fairway.services.regions.region_metrics import RegionMetrics

FILES = [deploy_files.RULES, deploy_files.RULES_TEST, deploy_files.DASHBOARD]
PROMTOOL = shutil.which("promtool")
METRIC = re.compile(r"\b(fairway_[a-z_]+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)(?:=~|!~|!=|=)")
SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("_sum", "_count"),
}
#: Made by Prometheus, not by us.
THEIRS = {"le", "instance", "job"}

with_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed: Debian's package prometheus"
)


def labels_by_metric() -> dict[str, set[str]]:
    """Every name in `/metrics`, also of metrics that have no value yet."""
    metrics = Metrics()
    RegionMetrics(metrics.registry)  # where there are several
    return {
        family.name + suffix: set(_labels(collector) or _labels(family))
        for registry in (metrics.registry, metrics.by_type)
        for collector in registry._collector_to_names
        for family in collector.collect()
        for suffix in SUFFIXES.get(family.type, ("",))
    }


def _labels(one: object) -> tuple[str, ...]:
    return tuple(getattr(one, "_labelnames", ()))


def unknown(text: str) -> Iterator[str]:
    """Metrics that there are not, and labels that theirs have not."""
    known = labels_by_metric()
    for name, chosen in METRIC.findall(text):
        if name not in known:
            yield name
        else:
            wrong = set(LABEL.findall(chosen)) - known[name] - THEIRS
            yield from (f"{name}{{{label}}}" for label in sorted(wrong))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_metric_in_deploy_exists(file: Path) -> None:
    text = file.read_text("utf-8").replace('\\"', '"')
    assert METRIC.search(text)
    assert sorted(set(unknown(text))) == []


def test_a_metric_that_is_renamed_would_be_noticed() -> None:
    text = 'fairway_waiting + fairway_restraints{sort="circuit"} + fairway_pickup_seconds_sum'
    assert list(unknown(text)) == ["fairway_waiting", "fairway_restraints{sort}"]
    assert list(unknown("rate(fairway_jobs_accepted[1m])")) == ["fairway_jobs_accepted"]


def test_the_files_are_those_of_the_code() -> None:
    again = "run `python -m tests.laws.pages.deploy_files`"
    assert deploy_files.RULES.read_text("utf-8") == rules(), again
    assert deploy_files.DASHBOARD.read_text("utf-8") == deploy_files.dashboard(), again


def test_the_rules_are_the_alarms() -> None:
    (group,) = yaml.safe_load(deploy_files.RULES.read_text("utf-8"))["groups"]
    told = {
        rule["alert"]: (rule["labels"]["severity"], rule["for"], rule["keep_firing_for"])
        for rule in group["rules"]
    }
    assert told == {
        alert_name(one): (
            one.severity,
            f"{one.hold_seconds:.0f}s",
            f"{one.clear_seconds:.0f}s",
        )
        for one in ALARMS
    }
    assert [rule["annotations"]["runbook"] for rule in group["rules"]] == [
        one.runbook for one in ALARMS
    ]
    assert EXPRESSIONS.keys() == {one.name for one in ALARMS}


def test_every_rule_is_tried() -> None:
    tests = yaml.safe_load(deploy_files.RULES_TEST.read_text("utf-8"))["tests"]
    tried = {one["alertname"] for test in tests for one in test["alert_rule_test"]}
    assert tried == {alert_name(one) for one in ALARMS}


def test_the_dashboard_has_room_for_each_panel_and_a_question_in_it() -> None:
    board = json.loads(deploy_files.DASHBOARD.read_text("utf-8"))
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in board["panels"]]
    assert len(set(places)) == len(places) == len(deploy_files.PANELS)
    assert all(one["targets"] and one["description"] for one in board["panels"])


@with_promtool
def test_promtool_understands_the_rules() -> None:
    _promtool("check", "rules", deploy_files.RULES)


@with_promtool
def test_the_rules_fire_and_cease_as_their_test_file_says() -> None:
    _promtool("test", "rules", deploy_files.RULES_TEST)


@with_promtool
def test_promtool_understands_every_question_of_the_dashboard(tmp_path: Path) -> None:
    board = json.loads(deploy_files.DASHBOARD.read_text("utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    recorded = [
        {
            "record": f"dashboard:question:{number}",
            "expr": text.replace("$__rate_interval", "1m").replace("$pool", ".*"),
        }
        for number, text in enumerate(asked)
    ]
    file = tmp_path / "questions.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}), "utf-8")
    _promtool("check", "rules", file)


def _promtool(*words: str | Path) -> None:
    assert PROMTOOL is not None
    ran = subprocess.run(
        [PROMTOOL, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
