"""Figures of the bench as they are printed, also those that nothing was measured for."""

from __future__ import annotations

import json
from math import nan

import pytest

from fairway.bench import output
from fairway.rig.quantile import quantile

FIGURES = {"submit_p95_ms": 11.7, "pickup_p50_ms": quantile([], 0.5) * 1000}


def test_json_has_null_for_what_was_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(FIGURES, json_output=True)
    printed = capsys.readouterr().out
    assert json.loads(printed, parse_constant=pytest.fail) == {
        "submit_p95_ms": 11.7,
        "pickup_p50_ms": None,
    }


def test_people_read_of_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    aim = output.Aim("< 5", lambda value: value < 5)
    output.show(FIGURES, json_output=False)
    output.show_table("Engine", FIGURES | {"ratio": nan}, {"pickup_p50_ms": aim})
    printed = capsys.readouterr().out
    assert "nan" not in printed
    assert printed.count("–") == 2
