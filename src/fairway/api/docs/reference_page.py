"""`/docs`, rendered from the OpenAPI document alone: what it does not say, the page does not."""

from __future__ import annotations

from collections.abc import Iterator

from fairway.api.docs.markup import block, escape, fold, inline, json_block, paragraphs, table
from fairway.api.docs.schema_tables import Node, fields, link, name_of
from fairway.api.http.address import PLACE
from fairway.wire.problems import type_of

URL_VARIABLE = "$FAIRWAY_URL"
BEGIN = f"""export FAIRWAY_URL={URL_VARIABLE}
export FAIRWAY_API_KEY=fw_tenant_…         # what a tenant uses
export FAIRWAY_WORKER_KEY=fw_worker_…      # what a worker uses
export FAIRWAY_OPERATOR_KEY=fw_operator_…  # what an operator uses"""


def contents(document: Node) -> str:
    """The list of places: every operation under its heading."""
    parts = ['<a class="place" href="#begin">Begin</a>']
    for tag in document["tags"]:
        parts.append(f'<strong><a href="#{escape(tag["name"])}">{escape(tag["name"])}</a></strong>')
        parts += [
            f'<a class="place" href="#{escape(node["operationId"])}">'
            f"{_method(method)}<span>{escape(node['summary'])}</span></a>"
            for _, method, node in _operations(document, tag["name"])
        ]
    parts.append('<strong><a href="#Problems">Problems</a></strong>')
    parts.append('<strong><a href="#Messages">Messages</a></strong>')
    return "".join(parts)


def body(document: Node) -> str:
    groups = "".join(_group(document, tag) for tag in document["tags"])
    return _begin(document["info"]) + groups + _problems(document) + _messages(document)


def _begin(info: Node) -> str:
    first, *promise = info["description"].split("\n\n")
    return (
        f'<section id="begin"><h1>{escape(info["title"])} API <small>{escape(info["version"])}'
        f'</small></h1><p class="lead">{inline(first)}</p>'
        f"<blockquote>{paragraphs(' '.join(promise))}</blockquote>"
        "<p>Every example below can be pasted once these are set. <code>fairway up</code> shows"
        " the keys when it makes them, and keeps them in <code>client.json</code> of its data"
        " folder; <code>JOB</code> and <code>KEY_ID</code> come from earlier replies.</p>"
        f"{_addressed(block(BEGIN, 'Variables'))}</section>"
    )


def _addressed(example: str) -> str:
    """An example with the address that the page is asked under."""
    return example.replace(URL_VARIABLE, f'<span class="address">{PLACE}</span>')


def _group(document: Node, tag: Node) -> str:
    inner = "".join(
        _operation(document, path, method, node)
        for path, method, node in _operations(document, tag["name"])
    )
    name = escape(tag["name"])
    return f'<section id="{name}"><h2>{name}</h2>{paragraphs(tag["description"])}{inner}</section>'


def _operations(document: Node, tag: str) -> Iterator[tuple[str, str, Node]]:
    for path, methods in document["paths"].items():
        for method, node in methods.items():
            if tag in node["tags"]:
                yield path, method.upper(), node


def _operation(document: Node, path: str, method: str, node: Node) -> str:
    name = escape(node["operationId"])
    parts = [
        f'<article id="{name}"><h3><a href="#{name}">{escape(node["summary"])}</a></h3>'
        f'<p class="path">{_method(method)}<code>{escape(path)}</code>{_key(node)}</p>',
        f"<div class=columns><div>{paragraphs(node['description'])}{_parameters(node)}",
        _body(document, node),
        f"</div><div>{_addressed(block(node['x-codeSamples'][0]['source'], 'Example'))}",
        _replies(node),
        "</div></div></article>",
    ]
    return "".join(parts)


def _method(method: str) -> str:
    return f'<b class="method {method.lower()}">{method}</b>'


def _key(node: Node) -> str:
    names = [name for scheme in node["security"] for name in scheme]
    if not names:
        return ""
    may = "no key, or " if {} in node["security"] else ""
    return f'<span class="key">{may}{escape(" or ".join(names))} key</span>'


# -- what goes in ------------------------------------------------------------------------------


def _parameters(node: Node) -> str:
    if not node["parameters"]:
        return ""
    rows = [
        (
            f"<code>{escape(one['name'])}</code><small>{escape(one['in'])}</small>",
            f"{inline(one['description'])}"
            f"<small>such as <code>{escape(one['example'])}</code></small>",
        )
        for one in node["parameters"]
    ]
    return "<h4>Parameters</h4>" + table(("Name", "Meaning"), rows)


def _body(document: Node, node: Node) -> str:
    if "requestBody" not in node:
        return ""
    name = name_of(node["requestBody"]["content"]["application/json"]["schema"])
    schema = document["components"]["schemas"][name]
    return f"<h4>Body <small>{link(name)}</small></h4>" + fields(schema)


# -- what comes out ----------------------------------------------------------------------------


def _replies(node: Node) -> str:
    good: list[str] = []
    bad: list[str] = []
    for status, reply in node["responses"].items():
        contents = reply.get("content", {})
        if "application/problem+json" in contents:
            bad += [_code(code) for code in contents["application/problem+json"]["examples"]]
        else:
            good.append(_reply(status, reply, is_open=not good))
    refusals = f'<p class="codes">{" ".join(bad)}</p>' if bad else ""
    return "<h4>Replies</h4>" + "".join(good) + refusals


def _reply(status: str, reply: Node, *, is_open: bool) -> str:
    headers = "".join(
        f"<li><code>{escape(name)}: {escape(one['example'])}</code>"
        f" {inline(one['description'])}</li>"
        for name, one in reply.get("headers", {}).items()
    )
    inner = f"<ul>{headers}</ul>" if headers else ""
    for media in reply.get("content", {}).values():
        inner += json_block(media["example"], f"Reply {status}")
    summary = f'<b class="status s{status[0]}">{status}</b> {inline(reply["description"])}'
    return fold(summary, inner, is_open=is_open) if inner else f'<p class="bare">{summary}</p>'


def _code(code: str) -> str:
    return f'<a href="{escape(type_of(code))}"><code>{escape(code)}</code></a>'


# -- problems and messages ---------------------------------------------------------------------


def _problems(document: Node) -> str:
    found: dict[str, Node] = {}
    for methods in document["paths"].values():
        for node in methods.values():
            for reply in node["responses"].values():
                examples = reply.get("content", {}).get("application/problem+json", {})
                found |= {k: v["value"] for k, v in examples.get("examples", {}).items()}
    rows = [
        (
            f'<b class="status s{one["status"] // 100}">{one["status"]}</b>',
            _code(code),
            inline(one["title"]),
        )
        for code, one in sorted(found.items(), key=lambda item: (item[1]["status"], item[0]))
    ]
    return (
        '<section id="Problems"><h2>Problems</h2><p>Every error is a problem document (RFC 9457)'
        " with a stable <code>code</code>; fields at fault are named by JSON pointer.</p>"
        + table(("Status", "Code", "Meaning"), rows)
        + "</section>"
    )


def _messages(document: Node) -> str:
    inner = "".join(
        f'<article class="message" id="{escape(name)}"><h3>{escape(name)}</h3>'
        f"{paragraphs(schema.get('description', ''))}{fields(schema)}</article>"
        for name, schema in document["components"]["schemas"].items()
    )
    return f'<section id="Messages"><h2>Messages</h2><div class="messages">{inner}</div></section>'
