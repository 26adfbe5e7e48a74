"""schemathesis reads what the API says of itself, and asks for all that this allows and for much
that it does not, with every kind of key: each answer is one that the description promises.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.api.house import House, own_house
from tests.api.test_tenancy_matrix import declared
from tests.postgres import Server
from tests.properties import FACTOR

from fairway.api.endpoint import Endpoint
from fairway.api.routes import OPERATIONS

HERE = Path(__file__).parent
EXAMPLES = 2 * FACTOR  # of an operation, made at random
SECONDS_MAX = 240  # of one kind of key; where nothing else runs it takes some ten
SEED = "14"

#: Who asks → the scope of its key.
CALLERS = {
    "nobody": None,
    "a tenant": "tenant",
    "a worker": "worker",
    "a worker of a tenant": "worker",
    "an operator": "operator",
}
#: Only in `make soak`: answered as any worker is; test_worker_matrix.py tells the two apart.
SELDOM = {"a worker of a tenant"}
SHARED = {"tenant", "operator"}


@pytest.fixture(scope="module")
def asked(postgres_server: Server) -> Iterator[House]:
    """A server of its own: what an operator's key does here would be in the way of other tests."""
    with own_house(postgres_server, "schemathesis") as house:
        yield house


@pytest.fixture(scope="module")
def keys(asked: House) -> dict[str, str | None]:
    tenant, key = asked.new_tenant(tier="pro")
    return {
        "nobody": None,
        "a tenant": key,
        "a worker": asked.new_key({"scope": "worker"}),
        "a worker of a tenant": asked.new_key({"scope": "worker", "tenant": tenant}),
        "an operator": asked.operator_key,
    }


def settings_for(who: str) -> str:
    """What is not for this key is asked for once or twice: that it is refused needs no more.

    A worker asks for what is refused to no other key; test_tenancy_matrix.py asks for all.
    """
    others = [one for one in OPERATIONS if not {CALLERS[who], None} & declared(one)]
    refused = [one for one in others if who != "a worker" or declared(one) >= SHARED]
    less = "phases.examples.enabled = false\nphases.coverage.enabled = false\n"
    less += "generation.max-examples = 1\n"
    if who == "a worker of a tenant":  # as of any worker
        less = "enabled = false\n"
    left_out = [one for one in others if one not in refused]
    return (
        (HERE / "schemathesis.toml").read_text()
        + _for_operations(refused, less)
        + _for_operations(left_out, "enabled = false\n")
        + f"\n[generation]\nmax-examples = {EXAMPLES}\n"
    )


def _for_operations(operations: Sequence[Endpoint], settings: str) -> str:
    names = [one.name for one in operations]
    return (
        f"\n[[operations]]\ninclude-operation-id = {json.dumps(names)}\n{settings}" if names else ""
    )


@pytest.mark.timeout(SECONDS_MAX + 20)
@pytest.mark.parametrize(
    "who",
    [pytest.param(who, marks=[pytest.mark.slow] if who in SELDOM else []) for who in CALLERS],
)
def test_every_answer_is_one_that_is_promised(
    asked: House, keys: dict[str, str | None], who: str, tmp_path: Path
) -> None:
    (tmp_path / "schemathesis.toml").write_text(settings_for(who))
    words = [
        "run", f"{asked.url}/openapi.json", "--seed", SEED, "--generation-database", "none",
        "--suppress-health-check", "all", "--continue-on-failure", "--no-color",
    ]  # fmt: skip
    if keys[who] is not None:
        words += ["--header", f"Authorization: Bearer {keys[who]}"]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(HERE.parent.parent),
        "SCHEMATHESIS_HOOKS": "tests.api.schemathesis_hooks",
    }
    ran = subprocess.run(
        [Path(sys.executable).parent / "schemathesis", *words], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    said = "\n".join(line[:500] for line in ran.stdout.splitlines())
    print(said)  # noqa: T201  # pytest shows it with what failed
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert "Tested: " in said, "it asked for something"
