"""Signing in from a browser: what opens a session, who it stands for, links that open one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from fairway.wire.doc import doc

Shown = Annotated[str, Meta(min_length=1, max_length=256)]


class SignIn(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key, or the code of a link: one of the two."""

    key: Annotated[Shown | None, doc("A tenant's or an operator's key.")] = None
    code: Annotated[Shown | None, doc("What stands behind `#code=` in a sign-in link.")] = None


class SessionView(Struct, kw_only=True):
    """Who is signed in."""

    csrf: Annotated[
        str | None,
        doc(
            "Send it as `X-Fairway-Csrf` with whatever changes something by cookie. Null: you came"
            " with a key, and need none."
        ),
    ]
    scope: Annotated[str, doc("Whose key it was: tenant or operator.")]
    name: Annotated[str, doc("What the key is called, for people.")]
    tenant: Annotated[str | None, doc("The tenant's name; null for operators.")]
    may: Annotated[list[str], doc("Permissions.")]
    expires_at: Annotated[datetime | None, doc("When the session ends; null: you came with a key.")]


class SignInLink(Struct, kw_only=True):
    """An address that signs one browser in, once."""

    url: Annotated[str, doc("Open it in a browser. The code in it is sent to no server but this.")]
    expires_at: Annotated[datetime, doc("When it is good for nothing any more.")]
