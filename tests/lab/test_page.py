"""A report on disk: JSON without NaN, plots, one page that needs nothing else and escapes all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fairway.lab.report.content import Drawing, Finding, Report, Table, number, seconds
from fairway.lab.report.page import write
from fairway.lab.screen import tell
from fairway.rig.verdict import Verdict


def draw(figure: Any) -> None:
    figure.subplots().plot([1, 2, 3], [1, 4, 9])


def report(**changes: Any) -> Report:
    made: dict[str, Any] = {
        "name": "trial",
        "title": "A <b>trial</b>",
        "question": "Does it hold?",
        "found": "It does not.",
        "answer": "The rate does.",
        "data": {"value": 1.5, "none": float("nan"), "deep": [{"far": float("inf")}]},
        "findings": [Finding("rate", "7 /s", "≥ 6", True), Finding("p99", "3 s", "< 2 s", False)],
        "drawings": [Drawing("curve", "A curve.", draw), Drawing("other", "Another.", draw)],
        "tables": [Table("Rows", ["a", "b"], [["1", "<script>"]])],
        "notes": ["Scaled."],
    }
    return Report(**made | changes)


def test_a_report_is_json_plots_and_one_page(tmp_path: Path) -> None:
    page = write(report(), tmp_path)
    names = {"trial.json", "trial.html", "curve.png", "curve.svg", "other.png", "other.svg"}
    assert {file.name for file in tmp_path.iterdir()} == names
    document = json.loads((tmp_path / "trial.json").read_text())
    assert (document["value"], document["none"], document["deep"][0]["far"]) == (1.5, None, None)
    assert (document["verdict"], document["found"]) == ("did not hold", "It does not.")
    assert document["stamp"]["machine"]
    assert page.name == "trial.html"


def test_the_page_needs_nothing_else_and_escapes_everything(tmp_path: Path) -> None:
    text = write(report(), tmp_path).read_text("utf-8")
    assert "<script" not in text
    assert "A &lt;b&gt;trial&lt;/b&gt;" in text
    loads = re.findall(r'(?:src|href)="([^"#][^"]*)"', text)
    assert [one for one in loads if not one.startswith("data:")] == []
    assert text.count("<svg") == 2
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))  # two plots on one page do not share their parts


#: What else is in the report → what its page says first, and the exit status.
GOOD = [Finding("rate", "7 /s", "≥ 6", True), Finding("size", "3")]
CASES: dict[str, tuple[dict[str, Any], str, Verdict]] = {
    "held": ({"findings": GOOD}, "<strong>Held</strong> It does not.", Verdict.HELD),
    "not held": ({}, "<strong>Did not hold</strong> It does not.", Verdict.NOT_HELD),
    "busy": (
        {"findings": GOOD, "doubts": ["the machine was busy"]},
        "<strong>Unjudged</strong> It does not.</p><ul><li>The machine was busy.</li>",
        Verdict.UNJUDGED,
    ),
}


def test_a_busy_machine_marks_no_aim_as_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Finding("rate", "5 /s", "≥ 6", False), Finding("lost", "0", "0", True)]
    made = report(drawings=[], findings=found, doubts=["the machine was busy"])
    text = write(made, tmp_path).read_text("utf-8")
    tell(made, "trial.html")
    for said in (text, capsys.readouterr().err):
        assert "✗" not in said
        assert "?" in said
        assert "✓" in said
    assert 'class="finding open"' in text
    assert 'class="finding bad"' not in text


@pytest.mark.parametrize("case", CASES)
def test_a_page_says_first_what_was_found(tmp_path: Path, case: str) -> None:
    changes, words, verdict = CASES[case]
    made = report(drawings=[], **changes)
    text = write(made, tmp_path).read_text("utf-8")
    assert text.index("</h1>") < text.index(words) < text.index("Does it hold?")
    assert ("Do not quote" in text) == (verdict is Verdict.UNJUDGED)
    assert ("p99 is 3 s and should be &lt; 2 s" in text.lower()) == (verdict is Verdict.NOT_HELD)
    assert made.verdict is verdict
    assert json.loads((tmp_path / "trial.json").read_text())["verdict"] == verdict.words


def test_figures_are_short_and_say_their_unit() -> None:
    assert number(6.6667, "/s") == "6.67 /s"
    assert number(12345.6) == "12,346"
    assert number(float("nan")) == "–"
    assert number(float("inf")) == "∞"
    assert (seconds(0.0123), seconds(1.5), seconds(float("nan"))) == ("12.3 ms", "1.5 s", "–")
