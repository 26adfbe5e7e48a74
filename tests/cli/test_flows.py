"""`fairway flows …`: seen in every form, and nothing of it cancelled or replayed unasked."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import httpx2
import pytest
from tests.api.house import NO_TLS, House
from tests.cli.program import Run, said

from fairway.cli import flows
from fairway.cli.remote import Whose
from fairway.core.errors import InvalidRequest

JOB = {"type": "cli.never.run"}


@pytest.fixture
def options(house: House) -> Whose:
    return Whose(url=house.url, key=house.new_tenant()[1])


def make(options: Whose, **wanted: Any) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {options.key}"}
    with httpx2.Client(base_url=options.url or "", headers=headers, verify=NO_TLS) as client:
        made: dict[str, Any] = client.post("/v1/flows", json={"kind": "group", **wanted}).json()
        return made


def as_(options: Whose, form: Any) -> Whose:
    return Whose(url=options.url, key=options.key, output=form)


def test_the_program_knows_them(run: Run) -> None:
    assert said(run("flows", "list", "--state", "failed", "-o", "json")) == {"flows": []}


def test_flows_in_every_form(options: Whose, capsys: pytest.CaptureFixture[str]) -> None:
    flows.list_(options=options)
    assert capsys.readouterr().out == "No flows.\n"
    made = make(options, jobs=[JOB] * 3, callback=JOB)
    chain = make(options, kind="chain", jobs=[JOB] * 2)
    flows.list_(options=options)
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["id", "kind", "state"]
    assert [row.split()[:3] for row in rows] == [
        [chain["id"], "chain", "running"],
        [made["id"], "group", "running"],
    ]
    flows.list_(which=flows.FlowChoice(kind="group"), options=as_(options, "jsonl"))
    assert [json.loads(one)["id"] for one in capsys.readouterr().out.splitlines()] == [made["id"]]
    flows.list_(limit=1, options=as_(options, "csv"))
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["id"], row["total"]) == (chain["id"], "2")
    flows.jobs(made["id"], options=as_(options, "json"))
    found = json.loads(capsys.readouterr().out)["jobs"]
    assert [one["id"] for one in found] == [*reversed(made["jobs"])]
    flows.show(made["id"], options=options)
    shown = capsys.readouterr().out
    assert shown.startswith(f"{made['id']}  group  running\n")
    assert f"{made['callback']}, when all have succeeded" in shown
    with pytest.raises(InvalidRequest, match="from 1 to 10000"):
        flows.list_(limit=0, options=options)


def test_what_acts_on_many_asks(options: Whose, capsys: pytest.CaptureFixture[str]) -> None:
    made = make(options, jobs=[JOB] * 3, callback=JOB)
    whole = f"3 jobs and its callback unless that has ended of group {made['id']}"
    with pytest.raises(InvalidRequest, match=f"^This cancels {whole}. Nobody can be asked here"):
        flows.cancel(made["id"], options=options)
    with pytest.raises(InvalidRequest, match="This replays its callback if that is dead"):
        flows.replay(made["id"], options=options)
    flows.replay(made["id"], yes=True, options=as_(options, "json"))
    assert json.loads(capsys.readouterr().out) == {"id": made["id"], "replayed": 0}
    flows.cancel(made["id"], yes=True, options=options)
    assert capsys.readouterr().out == "cancelled, 3 cancelled.\n"
    plain = make(options, jobs=[JOB])
    flows.replay(plain["id"], options=options)  # nothing is dead, so nobody is asked
    assert capsys.readouterr().out == "0 jobs put back.\n"
