"""`fairway region`: what is asked of a directory, which may be of another build."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.cli.program import Run, sentence

from fairway.cli import regions
from fairway.cli.remote import Options
from fairway.core.errors import InvalidRequest


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


class Directory(Before):
    """`eu` answers, as far as it knows; `ap` is lost."""

    def get(self, path: str) -> dict[str, Any]:
        eu = {"name": "eu", "is_here": False, "is_reachable": True, "tenants": 3}
        ap = {"name": "ap", "is_here": False, "is_reachable": False, "tenants": 2}
        us = {"name": "us", "is_here": True, "is_reachable": True, "tenants": 1}
        return {"here": "us", "lag_seconds": 0.0, "regions": [eu, us, ap]}


def test_a_region_that_answers_is_not_failed_over_by_a_slip(
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = Directory()
    options = cast(Options, directory)
    for source in ("eu", "us"):
        to = "ap" if source == "us" else "us"
        with pytest.raises(InvalidRequest, match=f"{source} answers, so it is not lost. Nothing"):
            regions.failover(source, to=to, yes=True, options=options)
    assert (directory.asked, capsys.readouterr().err) == ([], "")
    regions.failover("ap", to="us", yes=True, options=options)
    with pytest.raises(InvalidRequest, match="Nobody can be asked here: say --yes"):
        regions.failover("eu", to="us", force=True, options=options)
    regions.failover("eu", to="us", force=True, yes=True, options=options)
    assert directory.asked == [{"to": "us"}, {"to": "us", "force": True}]
    assert "a failover is done nevertheless" in capsys.readouterr().err


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
