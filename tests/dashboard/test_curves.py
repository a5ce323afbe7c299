"""Curves in a headless Chromium: zoom, hover, the shared cursor, other policies, several runs."""

import json
import re
import time
from pathlib import Path

import pytest
from tests.dashboard.browsing import (
    READY,
    all_legends_show,
    chart_box,
    legend_times,
    move_mouse,
    select,
    served,
    set_slider,
    with_runs,
)
from tests.tools.browser import find_browser, open_page

from penstock.files.lock import Lock
from penstock.runs.run_directory import begin_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
]


def seconds(text: str) -> int:
    hours, minutes, rest = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + rest


def test_the_cursor_is_in_all_charts_and_shows_their_values(two_runs: Path) -> None:
    with served(two_runs) as address, open_page(with_runs(address, "ds2")) as page:
        page.wait_for(READY)
        set_slider(page, 0.25)
        page.wait_for(all_legends_show("0:07:30"))
        left, width, middle = chart_box(page)
        move_mouse(page, left + 0.5 * width, middle)
        page.wait_for(all_legends_show("0:15:00"))
        values = page.text(".u-legend")
        curves = page.evaluate("fetch('api/curves?run=ds2&points=4000').then((a) => a.json())")
        offered = curves["run"]["offered_rate"][curves["times"].index(900.0)]
        assert f"{offered / 1e6:.3g} M" in values
        # a vertical line stands in every chart
        lines = "[...document.querySelectorAll('.u-cursor-x')].filter((e) => e.checkVisibility())"
        assert page.evaluate(f"{lines}.length") == page.evaluate(
            "document.querySelectorAll('.uplot').length"
        )
        move_mouse(page, 2, 300)
        page.wait_for(all_legends_show("0:07:30"))
        page.poll()
        assert page.problems == []


def test_dragging_zooms_all_charts_and_a_click_moves_the_time(two_runs: Path) -> None:
    with served(two_runs) as address, open_page(with_runs(address, "ds2")) as page:
        page.wait_for(READY)
        left, width, middle = chart_box(page, 1)
        move_mouse(page, left + 0.4 * width, middle, "mousePressed", down=True)
        for share in (0.45, 0.55, 0.6):
            move_mouse(page, left + share * width, middle, down=True)
        move_mouse(page, left + 0.6 * width, middle, "mouseReleased")
        page.wait_for("!document.getElementById('unzoom').disabled")
        page.wait_for("document.querySelectorAll('.uplot').length >= 4")
        (zoomed,) = {url for url in page.requests if "curves" in url and "from=" in url}
        found = re.search(r"from=([\d.]+)&to=([\d.]+)", zoomed)
        assert found and [float(n) for n in found.groups()] == pytest.approx([720, 1080], abs=5)
        for share, at in ((0.02, 720 + 0.02 * 360), (0.98, 720 + 0.98 * 360)):
            time.sleep(0.3)
            move_mouse(page, left + share * width, middle)
            times = {seconds(text) for text in legend_times(page)}
            assert len(times) == 1 and abs(times.pop() - at) <= 15
        # a click in the middle of the zoomed range
        move_mouse(page, left + 0.5 * width, middle)
        for kind in ("mousePressed", "mouseReleased"):
            move_mouse(page, left + 0.5 * width, middle, kind, down=kind == "mousePressed")
        page.wait_for("/^0:(14:5|15:0)/.test(document.getElementById('clock').innerText)")
        page.evaluate("document.getElementById('unzoom').click()")
        page.wait_for("document.getElementById('unzoom').disabled")
        page.poll()
        assert page.problems == []


#: The legend of the chart of replicas: label, colour and dash of every line.
KEYS = """[...document.querySelectorAll('.chart')]
  .filter((each) => each.innerText.startsWith('Running replicas'))[0]
  .querySelectorAll('.u-series')"""
LINES = f"""Object.fromEntries([...{KEYS}].slice(1).map((row) => [
  row.querySelector('.u-label').innerText,
  getComputedStyle(row.querySelector('.u-marker')).borderTopColor]))"""


def test_several_policies_are_replayed_on_several_runs(two_runs: Path) -> None:
    with served(two_runs) as address, open_page(with_runs(address, "ds2", "dhalion")) as page:
        page.wait_for(READY)
        for policy in ("hpa-cpu", "threshold"):
            select(page, "policy", policy)
            page.wait_for(f"{policy!r}+', replayed on dhalion' in {LINES}")
        lines = page.evaluate(LINES)
        names = {
            f"{p}, replayed on {r}" for p in ("hpa-cpu", "threshold") for r in ("ds2", "dhalion")
        }
        assert {*lines} == {"ds2", "dhalion"} | names
        # a line has the colour of its run
        assert lines["ds2"] != lines["dhalion"]
        for name in names:
            assert lines[name] == lines[name.rpartition(" ")[2]]
        page.click("#policies button[data-policy=hpa-cpu]")
        page.wait_for(f"!('hpa-cpu, replayed on ds2' in {LINES})")
        assert "threshold, replayed on ds2" in page.evaluate(LINES)
        # of one run, each policy has its colour
        page.evaluate("document.querySelector('#run-list input[value=dhalion]').click()")
        page.wait_for(f"'threshold, replayed' in {LINES}")
        select(page, "policy", "hpa-cpu")
        page.wait_for(f"'hpa-cpu, replayed' in {LINES}")
        lines = page.evaluate(LINES)
        assert len({*lines.values()}) == len(lines) == 5
        page.poll()
        assert page.problems == []


def test_what_curves_leave_out_is_said(two_runs: Path) -> None:
    script = """(async () => {
      const { noteCurves } = await import('/assets/panels.js');
      const { Replays } = await import('/assets/replays.js');
      const replays = new Replays(null, null, null);
      replays.lines = [{ run: 'a', policy: 'ds2', is_cut: true, from_s: 3600 }];
      const changes = { count: 700, at: Array(600) };
      const curves = { is_thinned: true, operators_left_out: 3, changes };
      return noteCurves([{ name: 'a', curves }], replays).join(' ');
    })()"""
    with served(two_runs) as address, open_page(with_runs(address, "ds2")) as page:
        page.wait_for(READY)
        assert page.text("#curves-note") == ""
        notes = page.evaluate(script)
        for words in ("Thinned out", "3 more operators", "600 of 700 changes", "from 1:00:00"):
            assert words in notes


def test_panels_about_one_run_name_it_and_show_another_one(two_runs: Path) -> None:
    with served(two_runs) as address, open_page(with_runs(address, "ds2", "dhalion")) as page:
        page.wait_for(READY)
        page.wait_for("document.getElementById('summary').innerText.includes('The run')")
        page.wait_for("document.getElementById('health').innerText")
        assert page.text("#title") == "ds2, dhalion side by side"
        named = "[...document.querySelectorAll('.of-run')].map((e) => e.textContent)"
        assert {*page.evaluate(named)} == {"of ds2"}
        panels = ("#graph", "#decisions", "#summary", "#run-title")
        shown = {name: f"document.querySelector('{name}').textContent" for name in panels}
        before = {name: page.evaluate(text) for name, text in shown.items()}
        select(page, "shown", "dhalion")
        for name, text in shown.items():
            page.wait_for(f"{text} !== {json.dumps(before[name])}")
        assert {*page.evaluate(named)} == {"of dhalion"}
        assert "not the chosen time" in page.text("#summary-note")
        # curves of both runs: what each processed, both latencies, and the marks of its changes
        charts = page.text("#charts")
        for words in (
            "Processed",
            "ds2 p95",
            "ds2 p50",
            "dhalion p50",
            "a row for each run",
            "objective 60 s",
        ):
            assert words in charts
        set_slider(page, 0.5)
        page.wait_for("document.getElementById('health-note').innerText.includes('until 0:15:00')")


def test_health_shows_operators_with_their_troubles(two_runs: Path) -> None:
    script = """(async () => {
      const { drawHealth } = await import('/assets/health.js');
      const operator = { name: '<b>map</b>', restarts: 2, last_restart: 'OOM', late_rows: 1200,
        dead_letter_rows: 7, error: 'no key' };
      const calm = { name: 'sink', restarts: 0, last_restart: '', late_rows: null,
        dead_letter_rows: null, error: '' };
      const health = { problems: [], warnings: [], events: [], disk_bytes: {},
        operators: [operator, calm], events_until: null, events_left_out: true };
      const [place, note] = ['health', 'health-note'].map((id) => document.getElementById(id));
      drawHealth(place, note, health, 60);
      return document.getElementById('health').innerText;
    })()"""
    with served(two_runs) as address, open_page(with_runs(address, "ds2")) as page:
        page.wait_for(READY)
        page.wait_for("document.getElementById('health').innerText")
        text = page.evaluate(script)
        for words in ("<b>map</b>", "2", "OOM", "1.2 k", "7", "no key", "Earlier events are not"):
            assert words in text
        assert "sink" not in text


#: Answers of `overview` arrive two seconds late: what happens meanwhile comes first.
SLOW_OVERVIEW = """(() => {
  const fetched = window.fetch;
  window.fetch = async (...given) => {
    const answer = await fetched(...given);
    const isSlow = String(given[0]).startsWith('api/overview');
    if (isSlow) await new Promise((done) => setTimeout(done, 2000));
    return answer;
  };
})()"""


def test_an_answer_that_comes_late_does_not_undo_the_last_ticks(tmp_path: Path) -> None:
    prepared = prepare_simulation(SimulationSpec(minutes=30))
    ticks = [*prepared.ticks()]
    run = tmp_path / "live"
    run.mkdir()
    with (
        Lock(run / "lock"),
        begin_run(run, prepared.spec.to_json(), prepared.header()) as journal,
        served(tmp_path) as address,
        open_page(address) as page,
    ):
        for tick in ticks[:4]:
            journal.write(tick)
        page.wait_for(READY)
        page.wait_for("document.getElementById('clock').innerText === '0:01:00'")
        time.sleep(1.0)
        page.evaluate(SLOW_OVERVIEW)
        journal.write(ticks[4])
        time.sleep(1.2)  # the answer about this tick is on its way
        for tick in ticks[5:8]:
            journal.write(tick)
        page.wait_for("document.getElementById('clock').innerText === '0:02:00'", 15)
