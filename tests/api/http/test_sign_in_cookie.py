"""The cookie found among others, and which sites may sign people in."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.http.sign_in_cookie import (
    COOKIE,
    SECURE_COOKIE,
    refuse_other_sites,
    set_cookie,
    token_in_cookie,
)
from fairway.core.errors import Forbidden
from fairway.core.sign_in import csrf_token

TOKEN = "T" * 43


def scope(scheme: str = "http", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return {"type": "http", "scheme": scheme, "headers": named}


@pytest.mark.parametrize(
    ("cookies", "found"),
    [
        (f"{COOKIE}={TOKEN}", TOKEN),
        (f"a=1; {COOKIE}={TOKEN};b=2", TOKEN),
        (f"x{COOKIE}={TOKEN}", None),
        (f"{COOKIE}=", None),
        (f"{COOKIE}={TOKEN}x", None),
        (f"{COOKIE}={csrf_token(TOKEN)}", None),
        (f"{COOKIE}=nonsense; {COOKIE}={TOKEN}", TOKEN),
        ("", None),
        (";;==;", None),
    ],
)
def test_a_token_among_cookies(cookies: str, found: str | None) -> None:
    assert token_in_cookie(scope(cookie=cookies)) == found


def test_a_cookie_for_this_server_alone() -> None:
    usual = "; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200"
    assert set_cookie(scope(), TOKEN) == f"{COOKIE}={TOKEN}{usual}"
    assert set_cookie(scope("https"), TOKEN) == f"{SECURE_COOKIE}={TOKEN}{usual}; Secure"
    assert set_cookie(scope(x_forwarded_proto="https"), TOKEN).endswith("; Secure")
    assert "Max-Age=0" in set_cookie(scope(), "", seconds=0)


@pytest.mark.parametrize(
    ("headers", "may"),
    [
        ({}, True),  # a program
        ({"sec_fetch_site": "same-origin", "origin": "https://proxy.example"}, True),
        ({"sec_fetch_site": "none"}, True),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site", "origin": "http://a.example"}, False),
        ({"origin": "http://a.example", "host": "a.example"}, True),
        ({"origin": "http://a.example:81", "host": "a.example"}, False),
        ({"origin": "null", "host": "a.example"}, False),
        ({"origin": "http://[bad", "host": "a.example"}, False),
    ],
)
def test_who_may_sign_somebody_in(headers: dict[str, str], *, may: bool) -> None:
    if may:
        refuse_other_sites(scope(**headers))
        return
    with pytest.raises(Forbidden) as refused:
        refuse_other_sites(scope(**headers))
    assert refused.value.code == "CROSS_SITE_REQUEST"


def test_over_https_a_cookie_of_a_neighbour_is_not_looked_at() -> None:
    """One under the same domain can set the plain name, for a longer path: that comes first."""
    other = "B" * len(TOKEN)
    both = f"{COOKIE}={other}; {SECURE_COOKIE}={TOKEN}"
    for reached in (scope("https", cookie=both), scope(x_forwarded_proto="https", cookie=both)):
        assert token_in_cookie(reached) == TOKEN
    assert token_in_cookie(scope("https", cookie=f"{COOKIE}={other}")) is None
    assert token_in_cookie(scope(cookie=f"{COOKIE}={other}")) == other
    assert token_in_cookie(scope(cookie=both)) == TOKEN, "as one server passes it on to another"
