"""`fairway dashboard`: a link under the address that was asked, good for one sign-in."""

from __future__ import annotations

import json

import httpx2
from tests.api.house import NO_TLS, House
from tests.cli.program import Run, sentence


def test_a_link_that_signs_in(run: Run, house: House) -> None:
    there = house.url.replace("127.0.0.1", "localhost")
    ended = run("dashboard", FAIRWAY_URL=there)
    assert (ended.status, ended.err) == (0, ""), ended
    page, _, code = ended.out.strip().partition("#code=")
    assert page == f"{there}/ui/sign-in"
    with httpx2.Client(base_url=house.url, verify=NO_TLS) as browser:
        said = browser.post("/session", json={"code": code}).json()
        assert said["scope"] == "operator"
    assert json.loads(run("dashboard", "--json").out).keys() == {"url", "expires_at"}


def test_without_an_operators_key(run: Run) -> None:
    assert "No operator's key" in sentence(run("dashboard", FAIRWAY_OPERATOR_KEY=""))
