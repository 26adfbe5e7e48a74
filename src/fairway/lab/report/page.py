"""Writes a report: JSON, plots as PNG and SVG, and one HTML page that needs nothing else."""

from __future__ import annotations

import html
import re
from pathlib import Path

import msgspec

from fairway.lab.report.content import Finding, Mark, Report, Table
from fairway.lab.report.plots import render
from fairway.lab.report.stamp import stamp

_STYLE_FILE = Path(__file__).with_name("page.css")


def write(report: Report, folder: Path) -> Path:
    """Everything into this folder; answers the page."""
    folder.mkdir(parents=True, exist_ok=True)
    origin = stamp() | {"beside it": report.others}
    document = {
        **report.data,
        "verdict": report.verdict.words,
        "found": report.found,
        "doubts": report.doubts,
        "notes": report.notes,
        "stamp": origin,
    }
    text = msgspec.json.format(msgspec.json.encode(finite(document)), indent=2)
    (folder / f"{report.name}.json").write_bytes(text + b"\n")
    pictures = []
    for drawing in report.drawings:
        png, svg = render(drawing)
        (folder / f"{drawing.name}.png").write_bytes(png)
        (folder / f"{drawing.name}.svg").write_bytes(svg)
        pictures.append((drawing.caption, _inline(svg.decode(), drawing.name)))
    page = folder / f"{report.name}.html"
    page.write_text(_page(report, pictures, origin), "utf-8")
    return page


def finite(value: object) -> object:
    """JSON knows no NaN and no infinity: both mean "there is none"."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def _inline(svg: str, name: str) -> str:
    """Ready to stand in a page with others: no prologue, ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href=")#', rf"\1#{name}-", svg)
    return re.sub(r"url\(#", f"url(#{name}-", svg)


def _page(report: Report, pictures: list[tuple[str, str]], origin: dict[str, str]) -> str:
    figures = "".join(
        f"<figure>{svg}<figcaption>{_text(caption)}</figcaption></figure>"
        for caption, svg in pictures
    )
    findings = "".join(_finding(one, one.mark(report.verdict)) for one in report.findings)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(report.title)} · {_text(report.brand)}</title>"
        f"<style>{_STYLE_FILE.read_text('utf-8')}</style></head><body><main>"
        f'<header><p class="brand">{_text(report.brand)}</p>'
        f"<h1>{_text(report.title)}</h1>"
        f"{_verdict(report)}"
        f'<p class="question">{_text(report.question)}</p></header>'
        f"{_answer(report.answer)}"
        f'<section class="findings">{findings}</section>'
        f"{figures}{''.join(map(_table, report.tables))}{_notes(report.notes)}{_origin(origin)}"
        "</main></body></html>\n"
    )


def _verdict(report: Report) -> str:
    """What was found, in a sentence, with the verdict before it and its reasons below."""
    words = report.word
    state = report.verdict.name.lower().replace("_", "-")
    reasons = report.doubts or report.missed
    items = "".join(f"<li>{_text(reason[0].upper() + reason[1:])}.</li>" for reason in reasons)
    heed = "<p>Do not quote its figures.</p>" if report.doubts else ""
    return (
        f'<section class="verdict {state}"><p class="found"><strong>{words.capitalize()}</strong>'
        f" {_text(report.found)}</p>{f'<ul>{items}</ul>' if items else ''}{heed}</section>"
    )


def _answer(text: str) -> str:
    return f'<p class="answer">{_text(text)}</p>' if text else ""


def _finding(finding: Finding, mark: Mark) -> str:
    words = f"{mark.value} {finding.aim}".strip()
    aim = f'<span class="aim">{_text(words)}</span>' if finding.aim else ""
    return (
        f'<div class="finding {mark.name.lower()}"><span class="name">{_text(finding.name)}</span>'
        f'<span class="value">{_text(finding.value)}</span>{aim}</div>'
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in table.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return (
        f"<section class='table'><h2>{_text(table.caption)}</h2><div class='scroll'><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _notes(notes: list[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{_text(note)}</li>" for note in notes)
    return f'<section class="notes"><h2>How to read it</h2><ul>{items}</ul></section>'


def _origin(origin: dict[str, str]) -> str:
    items = "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in origin.items())
    return f"<footer><dl>{items}</dl></footer>"


def _text(text: str) -> str:
    return html.escape(text)
