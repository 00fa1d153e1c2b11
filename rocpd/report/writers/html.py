"""Writes a report as one page that needs no network and no script; its script sorts, filters, copies and zooms.

Names and markers of a trace are hostile input: they come in as text only, and the page's policy runs only the script
whose hash it names.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from html import escape
from pathlib import Path

from rocpd.base import by_key
from rocpd.chart.draw import NARROW, Dot, Rect, Stroke, draw, spark_svg, svg
from rocpd.chart.model import WORK, Timeline
from rocpd.report import model
from rocpd.report.contents import section_of
from rocpd.report.writers.cells import MOST_ROWS, heads, rest, shown, word
from rocpd.summary.findings import Finding
from rocpd.table.cell import one_line, shorten
from rocpd.table.html import command, quoted, style

_LONGEST = 300  # characters of a full name: some have thousands
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"  # of shares, for the script
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write_html(report: model.Report, path: Path) -> None:
    """Write the page."""
    path.write_text(html(report), encoding="utf-8", errors="backslashreplace")


_WORDS, _WHOLE = re.compile(r"(?<!\S)-\S+"), r'<span class="whole">\g<0></span>'
"""Options in a title, which must not be broken after hyphens."""


def html(report: model.Report) -> str:
    """Return the page."""
    script, css = (Path(__file__).parent / "report.js").read_text(encoding="utf-8"), style()
    rules = ["default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    rules += [f"script-src '{_hash(script)}'", f"style-src '{_hash(css)}'"]
    title = _text(report.title)
    links = "".join(
        f'<a href="#{_text(each.name)}">{_text(each.title)}</a>\n' for each in report.sections if not each.is_empty
    )
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{escape("; ".join(rules))}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f"<title>{title}</title>\n<style>{css}</style>\n</head>\n<body>\n",
            f'<header>\n<h1>{_WORDS.sub(_WHOLE, title)}</h1>\n<p class="dim">{_text(report.inputs)}</p>\n',
            f'<nav aria-label="Sections">\n{links}</nav>\n</header>\n<main id="report">\n',
            body(report.sections),
            f"</main>\n<footer><p>Made by {_text(report.made_by)}.</p></footer>\n",
            *_data(report),
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def body(sections: Iterable[model.Section]) -> str:
    """Return sections without page and script; sections without data share one line at the end."""
    known = list(sections)
    empty = [section for section in known if section.is_empty]
    shown = "".join(part for section in known if not section.is_empty for part in _section(section))
    return shown + (_without_data(empty) if empty else "")


def _without_data(sections: Sequence[model.Section]) -> str:
    """Return the titles of sections without data, with the reasons folded away."""
    titles = ", ".join(_text(section.title) for section in sections)
    reasons = "".join(
        f'<div id="{_text(section.name)}"><b>{_text(section.title)}</b>{"".join(_block(block, section.name))}</div>\n'
        for section in sections
        for block in section.blocks
    )
    return f'<details class="empty"><summary>Without data: {titles}</summary>\n{reasons}</details>\n'


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _text(value: object) -> str:
    return escape(one_line(value))


def _section(section: model.Section) -> Iterator[str]:
    name = _text(section.name)
    yield f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{_text(section.title)}</h2>\n'
    if section.is_folded:
        titles = ", ".join(_text(block.title) for block in section.blocks if isinstance(block, model.Table))
        yield f"<details><summary>{titles}</summary>\n"
    for number, block in enumerate(section.blocks):
        if number and isinstance(block, model.Table) and not section.is_folded:
            yield f"<details><summary>{_text(block.title)}</summary>\n"
            yield from _block(block, section.name)
            yield "</details>\n"
        else:
            yield from _block(block, section.name)
    if section.is_folded:
        yield "</details>\n"
    yield "</section>\n"


def _block(block: model.Block, section: str) -> Iterator[str]:
    match block:
        case model.Text():
            yield f"<p>{quoted(_text(block.text))}</p>\n"
        case model.Folded():
            items = "".join(f"<li>{quoted(_text(line))}</li>\n" for line in block.lines)
            yield f"<details><summary>{_text(block.title)}</summary>\n<ul>\n{items}</ul>\n</details>\n"
        case model.Findings():
            yield from _findings(block, section)
        case model.Table():
            yield f'<h3>{_text(block.title)}</h3>\n<p class="dim">{_text(block.doc)}</p>\n'
            yield from table_html(block)
        case model.Figure():
            yield from _figure(block)


def _findings(block: model.Findings, here: str) -> Iterator[str]:
    yield '<ol class="findings">\n'
    for conclusion in block.conclusions:
        finding = conclusion.finding
        section = section_of(finding.rule) if conclusion.section is None else conclusion.section
        where = f' <a href="#{section}">{section}</a>' if section not in ("", here) else ""
        before = word(finding)
        text = quoted(_text(finding.text))
        said = f"<b>{before}</b>{text}" if before else text
        kind = finding.verdict if before else "job"
        name = f' id="{conclusion.id}"' if conclusion.id else ""
        yield f'<li class="{kind}"{name}{_place(finding)}>{said}{where}{_notes(conclusion)}</li>\n'
    yield "</ol>\n"


def _place(finding: Finding) -> str:
    """Return the place of a finding as attributes, with which `rocpd view` opens it in Perfetto."""
    start, end = finding.window or (None, None)
    places = (("start", start), ("end", end), ("rank", finding.rank), ("host", finding.evidence.get("hostname")))
    return "".join(f' data-{name}="{_text(value)}"' for name, value in places if value is not None and finding.window)


def _notes(conclusion: model.Conclusion) -> str:
    shown = ((name, (command if name in model.COMMANDS else quoted)(_text(text))) for name, text in conclusion.notes)
    cells = by_key((name, f"<dd>{text}</dd>") for name, text in shown)  # a name comes once, before all its texts
    notes = "".join(f"<dt>{name}</dt>{''.join(texts)}" for name, texts in cells.items())
    return f'<dl class="parts">{notes}</dl>' if notes else ""


def _figure(figure: model.Figure) -> Iterator[str]:
    name = _text(figure.name)
    zoom = f' data-zoom="{name}-data"' if isinstance(figure.chart, Timeline) else ""
    yield f'<figure id="{name}-figure"{zoom}>\n<figcaption><b>{_text(figure.chart.title)}</b> '
    yield f"{quoted(_text(figure.description))}</figcaption>\n"
    yield svg(figure.drawing, figure.chart.title, figure.description, shown="broad")
    narrow = draw(figure.chart, NARROW)
    shapes = tuple(
        replace(shape, tip="") if isinstance(shape, Rect | Stroke | Dot) else shape for shape in narrow.shapes
    )
    yield svg(replace(narrow, shapes=shapes), figure.chart.title, figure.description, shown="narrow")
    yield f"<details><summary>{_text(figure.table.title)}</summary>\n"
    yield from table_html(figure.table)
    yield "</details>\n</figure>\n"


def table_html(table: model.Table) -> Iterator[str]:
    """Yield a table, and the number of rows left out."""
    label = _text(table.title)
    yield f'<div class="table {_text(table.name)}" tabindex="0" role="region" aria-label="{label}">'
    yield f'<table aria-label="{label}">\n<thead><tr>'
    for column, head in zip(table.columns, heads(table.columns), strict=True):
        kind = ' class="n"' if column.is_number else ""
        yield f'<th scope="col"{kind} title="{_text(column.doc)}">{escape(head)}</th>'
    yield "</tr></thead>\n<tbody>\n"
    rows = table.rows[:MOST_ROWS]
    for row in rows:
        yield f"<tr>{''.join(map(_cell, row, table.columns))}</tr>\n"
    yield "</tbody></table></div>\n"
    more = rest(table, len(rows))
    yield f'<p class="more">{quoted(_text(more))}</p>\n' if more else ""


def _cell(value: object, column: model.Column) -> str:
    if isinstance(value, model.Counts):
        return f"<td>{spark_svg(value.counts, _text(value.title))}</td>"
    if isinstance(value, model.Name):
        return f'<td title="{_text(shorten(value.full, _LONGEST))}">{_text(value.short)}</td>'
    text = escape(shown(value, column))
    if isinstance(value, (int, float)) and column.is_number:
        exact = f"{value:.6g}" if isinstance(value, float) else str(value)
        return f'<td class="n">{text}</td>' if exact == text else f'<td class="n" data-v="{exact}">{text}</td>'
    return f'<td class="n">{text}</td>' if column.is_number else f"<td>{text}</td>"


def _data(report: model.Report) -> Iterator[str]:
    """Yield the data that the script zooms into, as JSON that cannot end the element around it."""
    for figure in report.figures():
        chart = figure.chart
        if isinstance(chart, Timeline):
            shares = [["".join(map(_digit, part)) for part in row] for row in chart.shares]
            known = {"start": chart.start, "slice": chart.slice, "rows": chart.rows, "work": WORK, "shares": shares}
            data = json.dumps(known, ensure_ascii=False)
            safe = "".join(_UNSAFE.get(character, character) for character in data)
            yield f'<script type="application/json" id="{_text(figure.name)}-data">{safe}</script>\n'


def _digit(share: float) -> str:
    """Return a digit for a share from 0 to 1; only 0 gives the lowest digit."""
    most = len(_DIGITS) - 1
    return _DIGITS[min(most, max(1, round(share * most)))] if share > 0 else _DIGITS[0]
