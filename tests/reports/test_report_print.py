"""The report on paper: a headless Chromium prints it to PDF, and no table is cut off."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.dashboard.pages import make_runs
from tests.tools.browser import find_browser, open_page

from penstock.reports.run_report import write_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
]
#: A4 with margins of a centimetre, in CSS pixels.
PAPER_WIDTH = round(19 / 2.54 * 96)
#: Everything that is wider than the paper, or that hides a part of itself.
CUT = """[...document.querySelectorAll('table, td, pre, p, svg, h1, h2, .wide')].filter((each) =>
  each.getBoundingClientRect().right > document.documentElement.clientWidth + 1
  || (each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX !== 'visible'))
  .map((each) => `${each.tagName} ${each.textContent.slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report about four runs with long names."""
    root = make_runs(tmp_path_factory.mktemp("runs"), "ds2", "dhalion", minutes=30)
    names = ["the-first-run-of-a-long-series", "b" * 40, "a_run_with_another_name", "ds2-again"]
    for name, policy in zip(names, ("ds2", "dhalion", "ds2", "dhalion"), strict=True):
        shutil.copytree(root / policy, root / name)
    write_report([root / name for name in names], root / "report.html")
    return root / "report.html"


def test_no_table_is_cut_off_on_paper(report: Path) -> None:
    with open_page(report.as_uri(), width=PAPER_WIDTH, height=1000) as page:
        page.call("Emulation.setEmulatedMedia", media="print")
        assert page.evaluate(CUT) == []
        # every run begins on a page of its own
        runs = "[...document.querySelectorAll('section.run')]"
        breaks = f"{runs}.map((each) => getComputedStyle(each).breakBefore)"
        assert page.evaluate(breaks) == ["auto", "page", "page", "page"]


def test_it_prints_to_pages(report: Path, tmp_path: Path) -> None:
    paper = tmp_path / "report.pdf"
    browser = find_browser()
    assert browser is not None
    flags = ["--headless=new", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [browser, *flags, "--no-pdf-header-footer", f"--print-to-pdf={paper}"]
    subprocess.run([*command, report.as_uri()], check=True, capture_output=True, timeout=120)
    data = paper.read_bytes()
    assert data.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", data))
    assert 4 <= pages <= 40  # each run has pages of its own, and none is spread over many
