"""Every relative link of a page leads to a file, and its anchor to a heading."""

from pathlib import PurePosixPath

import pytest
from tests.documents.pages import ROOT, all_pages, headings, links, read_page


@pytest.mark.parametrize("page", all_pages())
def test_links_lead_somewhere(page: str) -> None:
    assert [link for link in links(read_page(page)) if not _exists(page, link)] == []


def _exists(page: str, link: str) -> bool:
    if link.startswith(("https://", "http://", "mailto:")):
        return True
    target, _, anchor = link.partition("#")
    path = ROOT / PurePosixPath(page).parent / target if target else ROOT / page
    if not path.exists() or not path.resolve().is_relative_to(ROOT.resolve()):
        return False
    return not anchor or anchor in headings(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("docs/benchmarks.md", True),
        ("docs/nothing.md", False),
        ("CONTRIBUTING.md#conventions", True),
        ("CONTRIBUTING.md#nothing", False),
        ("../outside.md", False),
        ("https://example.org/", True),
    ],
)
def test_a_wrong_link_is_found(link: str, expected: bool) -> None:
    assert _exists("README.md", link) is expected
