"""docs/EXCHANGE.md is true: its tables are the wire types' fields, and its session runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.api.house import House

from fairway.api.docs.openapi import document
from fairway.core.pools import BUILT_IN
from fairway.core.run.outcome import FailureClass, OutcomeKind

PAGE = Path(__file__).parents[2] / "docs/EXCHANGE.md"
MESSAGES = (
    "ExchangeRequest", "Hello", "SlotOffer", "TypeTerms", "Holding", "Report", "FollowUps",
    "ExchangeReply", "OwnerAt", "Lease",
)  # fmt: skip


def kind(field: dict[str, object]) -> str:
    """A schema as the page says it."""
    match field:
        case {"$ref": str(ref)}:
            return ref.rsplit("/", 1)[-1]
        case {"anyOf": [first, _]} if isinstance(first, dict):
            return f"{kind(first)} or null"
        case {"enum": _}:
            return "one of those below"
        case {"type": "array", "items": dict(items)}:
            return f"list of {kind(items)}"
        case {"type": "object", "additionalProperties": dict(values)} if values:
            return f"map to {kind(values)}"
        case {"type": str(name)}:
            return name
    return "any JSON"


def table(name: str) -> str:
    """The table of one message as it must stand on the page."""
    schema = document()["components"]["schemas"][name]
    required = schema.get("required", ())
    rows = ["| field | kind | meaning |", "|---|---|---|"]
    rows += [
        f"| `{field}`{' (required)' if field in required else ''} | {kind(node)} |"
        f" {node['description']} |"
        for field, node in schema["properties"].items()
    ]
    return "\n".join(rows)


@pytest.mark.parametrize("name", MESSAGES)
def test_the_tables_are_the_wire_types(name: str) -> None:
    assert f"### {name}\n\n{table(name)}\n" in PAGE.read_text()


def test_the_page_names_every_outcome_and_every_lease_time() -> None:
    text = PAGE.read_text()
    for word in (*OutcomeKind, *FailureClass):
        assert f"| `{word.value}` |" in text
    leases = ", ".join(f"{pool.name} {pool.lease_seconds:.0f} s" for pool in BUILT_IN)
    assert f"({leases})" in text


def test_the_session_runs_as_it_stands(house: House) -> None:
    _, key = house.new_tenant()
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.S)
    script = "\necho; echo ----\n".join(blocks)
    environment = {
        "PATH": "/usr/bin:/bin",
        "FAIRWAY_URL": house.url,
        "FAIRWAY_API_KEY": key,
        "FAIRWAY_WORKER_KEY": house.new_key({"scope": "worker"}),
    }
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], env=environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr + ran.stdout
    hello, accepted, leased, _, told, again, end = ran.stdout.split("----\n")
    assert set(json.loads(hello)) <= {"beat_ms"}
    job = json.loads(accepted)["id"]
    assert json.loads(leased)["leases"][0]["job"] == job
    assert '"recorded":[1]' in told
    assert '"recorded":[1]' in again
    (found,) = json.loads(end[: end.index('"next_cursor":null}') + 19])["jobs"]
    assert (found["id"], found["state"], found["result"]) == (job, "succeeded", "Hello, Ada!")
