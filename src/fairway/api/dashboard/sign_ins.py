"""Signing in from a browser, and out: `/session`, and links that open one.

A key is shown once, in a body; from then on the browser shows a cookie that no script can read.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import SESSION, CookieSession, actor_by, caller_address, holder_of
from fairway.api.endpoint import Endpoint, Reply, ReplyHeader
from fairway.api.http.address import address_of
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.http.sign_in_cookie import COOKIE, is_https, refuse_other_sites, set_cookie
from fairway.core.errors import Forbidden, InvalidRequest
from fairway.core.sign_in import csrf_token
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire.sign_in import SessionView, SignIn, SignInLink

SIGN_IN_PATH = "/ui/sign-in"
_NO_STORE = "no-store"  # neither browsers nor proxies keep what opens something
_EXAMPLE: dict[str, Any] = {
    "csrf": "5f0c1e8a9b7d4c6e8f1a2b3c4d5e6f705f0c1e8a9b7d4c6e8f1a2b3c4d5e6f70",
    "scope": "operator",
    "name": "on call",
    "tenant": None,
    "may": ["admin", "operate", "read"],
    "expires_at": "2026-02-01T00:00:00Z",
}
_SET_COOKIE = ReplyHeader(
    "Set-Cookie",
    "The session, for the browser alone: HttpOnly, SameSite=Strict; over https Secure, and its name"
    " begins with `__Host-`.",
    f"{COOKIE}=…; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200",
)


@Endpoint(
    "POST /session",
    body=SignIn,
    body_example={"key": "fw_operator_b81f02aa_…"},
    reply=Reply(200, "You are signed in.", SessionView, _EXAMPLE, (_SET_COOKIE,)),
    problems=(
        *("UNAUTHENTICATED", "FORBIDDEN", "TENANT_SUSPENDED", "CROSS_SITE_REQUEST"),
        *("TOO_MANY_WRONG_KEYS", "TOO_MANY_SIGN_INS", "TENANT_MOVING", "UNAVAILABLE"),
    ),
)
async def sign_in(request: Request, platform: Platform) -> Response:
    """Sign in

    A tenant's or an operator's key, or the code of a sign-in link, opens a session of 12 hours,
    whose cookie stands for the key. It ends when you sign out and when the key does. A key has 20
    sessions at most: the oldest gives way to a new one.
    """
    refuse_other_sites(request.scope)
    wanted = await decoded(request, SignIn)
    principal = await _shown(wanted, platform, caller_address(request.scope, platform))
    actor = actor_by(principal, request.scope, platform)
    opened = await platform.sign_ins.open(principal, actor)
    reply = _told(principal, CookieSession(opened.token, opened.expires_at))
    reply.headers["set-cookie"] = set_cookie(request.scope, opened.token)
    return reply


async def _shown(wanted: SignIn, platform: Platform, address: str) -> Principal:
    if (wanted.key is None) == (wanted.code is None):
        raise InvalidRequest("Send a key or the code of a link: one of the two.", field="/key")
    if wanted.code is not None:
        found = await platform.sign_ins.take_link(wanted.code, address)
        why = "This link was used before, or is too old: make a new one (fairway dashboard)."
    else:
        key = (wanted.key or "").strip()
        found = platform.directory.known(key) or await holder_of(key, address, platform)
        why = "This API key is not valid."
    if found is None:
        raise Forbidden(why, code="UNAUTHENTICATED")
    return found


@Endpoint(
    "GET /session",
    keys=("operator", "tenant"),
    reply=Reply(200, "Who is signed in.", SessionView, _EXAMPLE),
)
async def get_session(request: Request, principal: Principal) -> Response:
    """Who is signed in

    By the cookie; or, with a key, whom the key stands for.
    """
    return _told(principal, request.scope.get(SESSION))


@Endpoint(
    "POST /session/links",
    keys=("operator",),
    permission="read",
    reply=Reply(
        201,
        "The link.",
        SignInLink,
        {
            "url": f"http://127.0.0.1:8700{SIGN_IN_PATH}#code=…",
            "expires_at": "2026-01-31T12:10:00Z",
        },
    ),
    problems=("TOO_MANY_SIGN_INS",),
)
async def add_sign_in_link(request: Request, platform: Platform, principal: Principal) -> Response:
    """Make a sign-in link

    It signs one browser in, once, within ten minutes, as the key that made it, which nobody has to
    type then. A session makes none: it would outlive itself.
    """
    if SESSION in request.scope:
        raise Forbidden("A link is made with an operator's key, not by a session.")
    opened = await platform.sign_ins.add_link(principal.key_id)
    scheme = "https" if is_https(request.scope) else request.scope["scheme"]
    address = address_of({**request.scope, "scheme": scheme})
    link = SignInLink(url=link_at(address, opened.token), expires_at=opened.expires_at)
    reply = json_reply(link, 201)
    reply.headers["cache-control"] = _NO_STORE
    return reply


@Endpoint(
    "DELETE /session",
    keys=("operator", "tenant"),
    permission="read",
    reply=Reply(204, "You are signed out."),
)
async def sign_out(request: Request, platform: Platform) -> Response:
    """Sign out

    The session opens nothing any more, here at once and on every server within five seconds.
    """
    session: CookieSession | None = request.scope.get(SESSION)
    if session is not None:
        await platform.sign_ins.end(session.token)
    taken_away = set_cookie(request.scope, "", seconds=0)
    return Response(status_code=204, headers={"set-cookie": taken_away})


def link_at(address: str, code: str) -> str:
    """What stands behind the # stays in the browser: no server's log has it."""
    return f"{address}{SIGN_IN_PATH}#code={code}"


def _told(principal: Principal, session: CookieSession | None) -> Response:
    view = SessionView(
        csrf=None if session is None else csrf_token(session.token),
        scope=principal.scope,
        name=principal.name,
        tenant=None if principal.tenant is None else principal.tenant.name,
        may=sorted(principal.may),
        expires_at=None if session is None else session.expires_at,
    )
    reply = json_reply(view)
    reply.headers["cache-control"] = _NO_STORE
    return reply
