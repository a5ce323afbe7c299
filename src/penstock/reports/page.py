"""A self-contained HTML page: text, tables, pictures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from penstock.reports.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture as SVG text, with its caption."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page; its parts appear in the order of these fields."""

    title: str
    paragraphs: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
    #: Collapsed at first.
    folded: tuple[Table, ...] = ()


def make_page(title: str, sections: Sequence[Section], *lead: str) -> str:
    """Return the page as HTML."""
    ids = [f"s{number}" for number, _ in enumerate(sections, 1)]
    items = (
        f'<li><a href="#{i}">{escape(s.title)}</a></li>' for i, s in zip(ids, sections, strict=True)
    )
    contents = f"<nav><ul>{''.join(items)}</ul></nav>" if len(sections) > 1 else ""
    body = "\n".join(_section(i, section) for i, section in zip(ids, sections, strict=True))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{''.join(map(_paragraph, lead))}{contents}\n{body}\n"
        "</main>\n</body>\n</html>\n"
    )


def _section(name: str, section: Section) -> str:
    drawings = [_drawing(f"{name}-{i}-", d) for i, d in enumerate(section.drawings, 1)]
    parts = [
        f'<section id="{name}">\n<h2>{escape(section.title)}</h2>',
        *map(_paragraph, section.paragraphs),
        *drawings,
        *map(_table, section.tables),
        *map(_folded, section.folded),
        "</section>",
    ]
    return "\n".join(parts)


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n" if text else ""


def _drawing(prefix: str, drawing: Drawing) -> str:
    """Place a picture; its ids get a prefix, because ids are unique per page."""
    svg = drawing.svg[drawing.svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    svg = svg.replace("url(#", f"url(#{prefix}")
    caption = escape(drawing.caption)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{caption}"', 1)
    return f"<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>"


def _table(table: Table) -> str:
    title = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    head = _row(table.columns, "th", table.words)
    body = "\n".join(_row(row, "td", table.words) for row in table.rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="wide"><table>{title}\n<thead>{head}</thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n{notes}"
    )


def _row(cells: Sequence[str], tag: str, words: int) -> str:
    opened = [f'<{tag} class="word">'] * words + [f"<{tag}>"] * (len(cells) - words)
    shown = (f"{o}{escape(cell)}</{tag}>" for o, cell in zip(opened, cells, strict=True))
    return f"<tr>{''.join(shown)}</tr>"


def _folded(table: Table) -> str:
    return f"<details><summary>{escape(table.title)}</summary>\n{_table(table)}\n</details>"


_STYLE = """\
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1f2328;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.8rem; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid #d7dce1; }
p { max-width: 46rem; }
nav ul { padding-left: 1.2rem; columns: 22rem; }
a { color: #0b5cad; }
.wide { overflow-x: auto; margin: 1rem 0 .25rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { padding: .35rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #e6e9ec; }
th { background: #f4f6f8; font-weight: 600; vertical-align: bottom; }
th.word, td.word { text-align: left; }
td.word { white-space: normal; vertical-align: top; max-width: 24rem; }
td.word:first-child { font-weight: 600; white-space: nowrap; }
tbody tr:hover { background: #f8fafc; }
figure { margin: 1rem 0; }
figure svg { max-width: 100%; height: auto; }
figcaption, .note { color: #57606a; font-size: .875rem; margin: .25rem 0; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: #0b5cad; }
"""
