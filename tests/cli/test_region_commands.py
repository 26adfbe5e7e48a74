"""`fairway region`: what is asked of a directory, which may be of another build."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.cli.program import Run, sentence

from fairway.cli import regions
from fairway.cli.remote import Options


class Before:
    """A directory that knows nothing of `force`, and tells nothing of who waits."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def operator(self) -> Before:
        return self

    def call(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        return {"region": "us", "term": 2, "tenants": 1}

    def record(self, *_: object) -> None:
        """Nothing is shown."""


@pytest.mark.parametrize("force", [False, True])
def test_force_is_said_only_where_it_is_wished(force: bool) -> None:
    before = Before()
    options = cast(Options, before)
    regions.set_home("acme", "us", force=force, yes=True, options=options)
    regions.failback("us", force=force, yes=True, options=options)
    said = {"force": True} if force else {}
    assert before.asked == [{"region": "us"} | said, said]


def test_nobody_is_asked_about_what_cannot_be(run: Run) -> None:
    """This platform has no regions: the first look says so."""
    for words in (("failback", "eu"), ("set-home", "acme", "eu")):
        assert sentence(run("region", *words)).startswith("There are no regions here")
