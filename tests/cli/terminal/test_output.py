"""What is printed for programs is read by them as it was meant."""

from __future__ import annotations

import pytest

from fairway.cli.terminal.output import fields_of, show_csv, shown


def test_no_cell_is_taken_for_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    """Names and errors are a tenant's own words, and an operator opens the file in a sheet."""
    show_csv([{"name": "=HYPERLINK(1)", "subject": "@sum", "plain": "a=b", "count": -5}])
    assert capsys.readouterr().out.splitlines()[1] == "'=HYPERLINK(1),'@sum,a=b,-5"


def test_an_id_is_shown_as_it_is_to_be_typed() -> None:
    fields = {"id": 100_002, "burst": 100_000, "of": {"tenant_id": 100_003, "rows": 10_000}}
    lines = [line.split(maxsplit=1)[1] for line in fields_of(fields)]
    assert lines == ["100002", "100,000", "tenant_id 100003, rows 10,000"]
    assert shown(100_002) == "100,002"
