"""The cookie of a browser that signed in, and what keeps other sites from using it.

The cookie is shown to this server alone, and to no script. A request by cookie that changes
something shows a token besides, which pages of other sites do not know; signing in itself is
refused to pages of other sites, which would else sign people in as somebody they are not.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fairway.api.http.asgi import Scope
from fairway.api.http.headers import header
from fairway.core.errors import Forbidden
from fairway.core.sign_in import SESSION_SECONDS, is_csrf_token, is_token

COOKIE = "fairway_session"
CSRF = b"x-fairway-csrf"
OWN_SITE = (b"same-origin", b"none")  # none: somebody typed it, or a program that says so


def token_in_cookie(scope: Scope) -> str | None:
    """The session's token; None: no cookie of ours came, or one that is no token."""
    cookies = (header(scope, b"cookie") or b"").decode("latin-1").split(";")
    for name, _, value in (one.strip().partition("=") for one in cookies):
        if name == COOKIE and is_token(value):
            return value
    return None


def set_cookie(scope: Scope, token: str, seconds: int = SESSION_SECONDS) -> str:
    """The header that gives it to the browser; no seconds take it away."""
    parts = [f"{COOKIE}={token}", "HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={seconds}"]
    return "; ".join([*parts, "Secure"] if is_https(scope) else parts)


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
