"""One page: whole, escaped, and without anything from outside."""

import re
from html.parser import HTMLParser

from penstock.reports.page import Drawing, Section, make_page
from penstock.reports.tables import Table

SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg"><metadata>who, when</metadata>
<defs><path id="a" d="M0 0"/></defs><use href="#a"/><g clip-path="url(#a)"></g></svg>"""
TABLE = Table(title="All <pairs>", columns=("policy", "a\nb"), rows=(("x & y", "1"),))


class Reader(HTMLParser):
    """Notes every id, and that each tag is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page() -> str:
    drawing = Drawing(svg=SVG, caption='cost & "latency"')
    section = Section(title="q1", paragraphs=("a < b",), drawings=(drawing, drawing))
    return make_page("mine", [section, Section(title="q2", tables=(TABLE,), folded=(TABLE,))], "so")


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def test_every_tag_is_closed_and_every_id_is_there_once() -> None:
    reader = read(page())
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids) == 4


def test_links_within_pictures_follow_their_ids() -> None:
    html = page()
    ids = set(read(html).ids)
    links = re.findall(r'href="#([^"]+)"', html) + re.findall(r"url\(#([^)]+)\)", html)
    assert len(links) == 6 and set(links) <= ids


def test_what_people_wrote_is_escaped() -> None:
    html = page()
    for text in ("a &lt; b", "x &amp; y", "All &lt;pairs&gt;", "cost &amp; &quot;latency&quot;"):
        assert text in html


def test_nothing_comes_from_outside() -> None:
    html = page()
    assert not re.search(r'\b(src|href)="(?!#)|@import|<script|<link', html)
    assert "metadata" not in html and "<?xml" not in html


def test_one_section_needs_no_contents() -> None:
    assert "<nav>" in page() and "<nav>" not in make_page("mine", [Section(title="q1")])
