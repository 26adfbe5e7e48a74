"""What is printed for programs is read by them as it was meant."""

from __future__ import annotations

import pytest

from fairway.cli.terminal.output import show_csv


def test_no_cell_is_taken_for_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    """Names and errors are a tenant's own words, and an operator opens the file in a sheet."""
    show_csv([{"name": "=HYPERLINK(1)", "subject": "@sum", "plain": "a=b", "count": -5}])
    assert capsys.readouterr().out.splitlines()[1] == "'=HYPERLINK(1),'@sum,a=b,-5"
