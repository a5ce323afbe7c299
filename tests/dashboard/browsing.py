"""The dashboard in a browser for tests: serves runs, moves the slider, reads legends."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tools.browser import Page

#: Nothing is wider than the screen; panels are redrawn one after the other.
FITS = "document.documentElement.scrollWidth <= 400"
READY = "document.querySelectorAll('.uplot').length >= 4 && document.querySelector('#graph svg')"


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Serve a directory with the command; yield the printed address."""
    with serve(root) as (address, _):
        yield address


@contextmanager
def serve(root: Path) -> Iterator[tuple[str, int]]:
    """Serve a directory with the command; yield the printed address and the process id."""
    command = [sys.executable, "-m", "penstock", "dashboard", str(root), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield found.group(), process.pid
    finally:
        process.terminate()
        process.wait(15)
        process.stderr.close()


def with_runs(address: str, *names: str) -> str:
    query = "&".join(f"run={name}" for name in names)
    return address.replace("/#", f"/?{query}#")


def set_slider(page: Page, share: float) -> None:
    page.evaluate(
        "(s => { s.value = s.max * SHARE; s.dispatchEvent(new Event('input')); })"
        "(document.getElementById('slider'))".replace("SHARE", str(share))
    )


def select(page: Page, name: str, value: str) -> None:
    page.evaluate(
        f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById({name!r}))"
    )


IS_COMPLETE = "fetch('api/overview?run=ds2').then((a) => a.json()).then((o) => !o.is_partial)"
#: The time in the legend of every chart.
LEGENDS = (
    "[...document.querySelectorAll('.u-legend')]"
    ".map((each) => each.querySelector('.u-series .u-value').innerText)"
)


def legend_times(page: Page) -> list[str]:
    """Return the time that the legend of every chart shows."""
    return list(page.evaluate(LEGENDS))


def all_legends_show(text: str) -> str:
    """Return an expression: whether every legend shows a time."""
    return f"{LEGENDS}.every((each) => each === {text!r})"


def move_mouse(
    page: Page, x: float, y: float, kind: str = "mouseMoved", *, down: bool = False
) -> None:
    """Send an event of the mouse."""
    button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
    buttons = 1 if down else 0
    page.call(
        "Input.dispatchMouseEvent", **{"type": kind, "x": x, "y": y, "buttons": buttons, **button}
    )


def chart_box(page: Page, number: int = 0) -> tuple[float, float, float]:
    """Scroll a chart to the middle; return its left edge, its width, and its middle line."""
    left, width, top, height = page.evaluate(
        "(e => { e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
        " return [r.x, r.width, r.y, r.height]; })"
        f"(document.querySelectorAll('.u-over')[{number}])"
    )
    return left, width, top + height / 2
