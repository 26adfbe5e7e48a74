"""The address in examples is a name and a port, whatever somebody calls the server."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.http.address import address_of


def scope(host: bytes | None, server: tuple[str, int | None] | None = ("10.0.0.5", 8700)) -> Any:
    headers = [] if host is None else [(b"host", host)]
    return {"scheme": "http", "headers": headers, "server": server}


@pytest.mark.parametrize("host", ["jobs.example.com", "127.0.0.1:8700", "[::1]:8700", "box-1_a"])
def test_a_name_and_a_port_are_taken_as_they_are(host: str) -> None:
    assert address_of(scope(host.encode())) == f"http://{host}"


@pytest.mark.parametrize(
    "host",
    [None, b"", b"-a", b"a/b", b"a\n", b"a:", b"a:123456", b"a@b", b"[x]", b"a" * 300, b"\xff"],
)
def test_anything_else_is_where_the_server_listens(host: bytes | None) -> None:
    assert address_of(scope(host)) == "http://10.0.0.5:8700"


def test_where_it_listens_may_be_six_parts_or_unknown() -> None:
    assert address_of(scope(None, ("::1", 8700))) == "http://[::1]:8700"
    assert address_of(scope(None, None)) == "http://127.0.0.1"


@given(st.binary(max_size=80) | st.text("ab.:[]<>&'\"$`();\n\0 ", max_size=20).map(str.encode))
def test_nothing_that_a_page_or_a_shell_obeys_gets_through(host: bytes) -> None:
    assert re.fullmatch(r"http://[A-Za-z0-9._:\[\]-]+", address_of(scope(host)))
