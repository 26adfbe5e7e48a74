"""Small pieces of HTML, escaped: text with `code` in it, tables, code blocks, and the page frame.

Pages say all they say without their script, and ask for nothing from outside; the headers allow no
more than that.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from starlette.responses import HTMLResponse, Response

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}
# A flag on a green, drawn in place: an icon must not cost a request.
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
    "%3Crect width='32' height='32' rx='8' fill='%23157a4a'/%3E"
    "%3Cpath d='M12 6v20' stroke='%23fff' stroke-width='2.5' stroke-linecap='round'/%3E"
    "%3Cpath d='M12 7l12 4.5L12 16z' fill='%23fff'/%3E%3C/svg%3E"
)

# Shown by the script, which is what makes it search.
SEARCH = (
    '<search class="find" hidden><input type="search" placeholder="Search" autocomplete="off"'
    ' spellcheck="false" aria-keyshortcuts="/" aria-label="Search operations, problems, messages">'
    '<kbd aria-hidden="true">/</kbd><output></output></search>'
)

_CODE = re.compile(r"`([^`]+)`")


def page(title: str, main: str) -> Response:
    """A page to be read from top to bottom."""
    return html_reply(page_text(title, main).encode())


def html_reply(text: bytes) -> Response:
    return HTMLResponse(text, headers=SECURITY_HEADERS)


def page_text(title: str, main: str, aside: str = "") -> str:
    """A whole page in the house's look; one with a list of places on it (`aside`) has a search."""
    sides = f'<nav class="side" aria-label="On this page">{aside}</nav>' if aside else ""
    layout = "with-side" if aside else "alone"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="/docs.css">
<script src="/docs.js" defer></script>
</head>
<body>
<header class="top">
<a class="name" href="/"><span class="flag" aria-hidden="true"></span>Fairway</a>
{SEARCH if aside else ""}
<nav aria-label="Site"><a href="/docs">API</a><a href="/openapi.json">OpenAPI</a></nav></header>
<div class="{layout}">{sides}<main>{main}</main></div>
</body>
</html>
"""


def escape(text: object) -> str:
    return html.escape(str(text), quote=True)


def inline(text: str) -> str:
    """One line of words, with `code` in it."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def paragraphs(text: str) -> str:
    return "".join(f"<p>{inline(part)}</p>" for part in text.split("\n\n") if part)


def block(text: str, label: str) -> str:
    """Text as it is, with a button to copy it, which the script shows."""
    return (
        f'<div class="example"><pre tabindex="0" aria-label="{escape(label)}">'
        f"<code>{escape(text)}</code></pre>"
        '<button class="copy" type="button" hidden></button></div>'
    )


def json_block(value: Any, label: str) -> str:
    """JSON as people write it; a text stays as it is."""
    if isinstance(value, str):
        return block(value, label)
    return block(msgspec.json.format(msgspec.json.encode(value)).decode(), label)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already. Each knows its column's name, for narrow screens."""
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{escape(name)}">{cell}</td>'
            for name, cell in zip(head, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def fold(summary: str, inner: str, *, is_open: bool = False) -> str:
    """Something that opens when asked; `summary` is HTML already."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{inner}</details>"
