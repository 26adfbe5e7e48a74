"""The cookie of a browser that signed in, and what keeps other sites from using it.

The cookie is shown to this server alone, and to no script. A request by cookie that changes
something shows a token besides, which pages of other sites do not know; signing in itself is
refused to pages of other sites, which would else sign people in as somebody they are not. For the
same reason its name over https begins with `__Host-`: what a neighbour under the same domain sets
has another name, and is not looked at.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fairway.api.http.asgi import Scope, Send
from fairway.api.http.headers import header
from fairway.core.errors import Forbidden
from fairway.core.sign_in import SESSION_SECONDS, is_csrf_token, is_token

COOKIE = "fairway_session"
SECURE_COOKIE = f"__Host-{COOKIE}"  # browsers take it from this host alone, by https
CSRF = b"x-fairway-csrf"
OWN_SITE = (b"same-origin", b"none")  # none: somebody typed it, or a program that says so


def token_in_cookie(scope: Scope) -> str | None:
    """The session's token; None: no cookie of ours came, or one that is no token."""
    cookies = (header(scope, b"cookie") or b"").decode("latin-1").split(";")
    found: dict[str, str] = {}
    for name, _, value in (one.strip().partition("=") for one in cookies):
        if is_token(value):
            found.setdefault(name, value)
    plain = None if is_https(scope) else found.get(COOKIE)
    return found.get(SECURE_COOKIE, plain)


def set_cookie(scope: Scope, token: str, seconds: int = SESSION_SECONDS) -> str:
    """The header that gives it to the browser; no seconds take it away."""
    parts = ["HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={seconds}"]
    if is_https(scope):
        return "; ".join([f"{SECURE_COOKIE}={token}", *parts, "Secure"])
    return "; ".join([f"{COOKIE}={token}", *parts])


def not_kept(send: Send) -> Send:
    """A reply to a browser that says nothing of caches is kept by none.

    Caches that many share keep no reply to a request with `Authorization`, but for a cookie there
    is no such rule; and an operator asks for several tenants' things under the same address.
    """

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            if all(name.lower() != b"cache-control" for name, _ in headers):
                message = message | {"headers": [*headers, (b"cache-control", b"no-store")]}
        await send(message)

    return answer


def is_https(scope: Scope) -> bool:
    """Also behind a proxy. Whoever claims it in vain keeps its own cookie from itself."""
    return scope["scheme"] == "https" or header(scope, b"x-forwarded-proto") == b"https"


def check_not_forged(scope: Scope, token: str) -> None:
    """A request by cookie that changes something."""
    shown = (header(scope, CSRF) or b"").decode("latin-1")
    if not is_csrf_token(shown, token):
        raise Forbidden(
            "By cookie, what changes something needs the header X-Fairway-Csrf with the `csrf` of"
            " GET /session.",
            code="CROSS_SITE_REQUEST",
        )


def refuse_other_sites(scope: Scope) -> None:
    """Browsers say from which site a request comes; programs say nothing, and pass."""
    site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    if site is not None:
        is_own = site in OWN_SITE
    else:
        is_own = origin is None or _place(origin) == header(scope, b"host")
    if not is_own:
        raise Forbidden(
            "A page of another site cannot sign anybody in here.", code="CROSS_SITE_REQUEST"
        )


def _place(origin: bytes) -> bytes:
    """Name and port of an origin, as `Host` has them."""
    try:
        return urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
    except ValueError:
        return b""
