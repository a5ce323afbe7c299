"""The report of runs: one page without scripts, with the figures of result.json."""

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.dashboard.pages import make_host_run, make_instance_run

from penstock.cli.commands.simulate import spec_of
from penstock.cli.main import build_parser, main
from penstock.errors import InputError
from penstock.lab.simulation import run_simulation
from penstock.reports.run_command import repeat_command
from penstock.reports.run_report import read_reported_run, render_report
from penstock.reports.run_summary import compare_scores, has_same_load, remark_comparison
from penstock.reports.svg_chart import Chart, ChartLine, draw_chart
from penstock.reports.text_charts import short
from penstock.runs.run_directory import read_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two short simulated runs."""
    root, made = tmp_path_factory.mktemp("runs"), []
    for policy in ("ds2", "dhalion"):
        spec = SimulationSpec(policy=policy, minutes=30)
        run_simulation(prepare_simulation(spec), root / policy)
        made.append(root / policy)
    return made


class Page(HTMLParser):
    """Collects tags and text; fails on a tag that is not closed."""

    VOID = ("meta", "br", "path", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_report_is_one_page_without_scripts_that_names_the_figures(runs: list[Path]) -> None:
    text = render_report([read_reported_run(runs[0])])
    page, scores = Page(text), read_run(runs[0]).result.scores
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags
    assert not re.search(r"(src|href)=", text)
    assert page.tags.count("svg") == 4
    assert f"On average {scores.replicas.avg:.4g} replicas ran" in page.words
    assert f"It made {scores.rescales} changes" in page.words
    assert "penstock simulate --query q1 --engine flink" in page.words
    assert "overprovision: 5 → 6" in page.words and "Seed 1066" in page.words


def test_several_runs_are_compared_figure_by_figure(runs: list[Path]) -> None:
    reported = [read_reported_run(run) for run in runs]
    page = Page(render_report(reported))
    hours = [read_run(run).result.replica_hours for run in runs]
    rows = {row.label: row for row in compare_scores(["a", "b"], [r.scores for r in reported])}
    row = rows["replica-hours"]
    assert row.values == tuple(hours) and row.best == hours.index(min(hours))
    assert f"{100 * (1 - min(hours) / max(hours)):.3g} % less than" in row.verdict
    assert row.verdict.replace("a:", "ds2:").split(":")[0] in page.words
    assert "2 runs compared" in page.words


def test_a_change_has_its_predicted_and_its_measured_capacity(runs: list[Path]) -> None:
    reported = read_reported_run(runs[0])
    change = next(c for c in reported.changes if c["targets"][0]["effect"]["measured_rate"])
    target = change["targets"][0]
    page = Page(render_report([reported]))
    for rate in (target["expected_rate"], target["effect"]["measured_rate"]):
        assert rate > 0 and short(rate) in page.words
    assert "capacity, predicted" in page.words and "measured" in page.words


@pytest.mark.parametrize(
    "damage",
    [{"events": [3]}, {"applied": True, "decision": {"targets": {"source": 3}}}, {"running": []}],
)
def test_damaged_ticks_behind_a_change_are_left_out(
    damage: dict[str, Any], runs: list[Path], tmp_path: Path
) -> None:
    shutil.copytree(runs[0], tmp_path / "run")
    path = tmp_path / "run" / "journal.jsonl"
    header, *ticks = path.read_text().splitlines(keepends=True)
    for place in range(0, len(ticks), 3):
        ticks[place] = json.dumps(json.loads(ticks[place]) | damage) + "\n"
    path.write_text("".join([header, *ticks]))
    assert read_reported_run(tmp_path / "run").changes


def test_hosts_moves_instances_and_messages_have_curves(tmp_path: Path, runs: list[Path]) -> None:
    make_host_run(tmp_path / "hub")
    make_instance_run(tmp_path / "alone")
    titles = {
        run.name: {chart["title"] for chart in read_reported_run(run).charts}
        for run in (tmp_path / "hub", tmp_path / "alone", runs[0])
    }
    of_hosts = {"Hosts, and slices that move", "Load of hosts"}
    of_instances = {
        "Instances of all operators, and as many as the load needs",
        "What instances decided alone",
        "Messages of the protocol by operator",
    }
    assert of_hosts <= titles["hub"] and not of_instances & titles["hub"]
    assert of_instances <= titles["alone"] and not of_hosts & titles["alone"]
    assert not (of_hosts | of_instances) & titles[runs[0].name]


def test_runs_with_different_loads_have_no_winner(runs: list[Path]) -> None:
    scores = read_reported_run(runs[0]).scores
    other = replace(scores, offered_records=2 * scores.offered_records, replica_hours=0.1)
    assert not has_same_load([scores, other]) and has_same_load([scores, scores])
    assert {row.best for row in compare_scores(["a", "b"], [scores, other])} == {None}


def test_a_comparison_says_what_has_no_latency(runs: list[Path]) -> None:
    scores = read_reported_run(runs[0]).scores
    waiting = replace(scores, backlog_records=scores.offered_records // 50)
    rows = {row.label: row for row in compare_scores(["a", "b"], [waiting, scores])}
    row = rows["waiting at the end"]
    assert (row.best, row.verdict) == (1, "b: none")
    fair, flattered = remark_comparison(["a", "b"], [waiting, scores])
    assert "other seeds or loads" in fair
    assert "have no latency" in flattered and "flatter a (" in flattered and "waiting" in flattered
    dropping = replace(scores, dropped_records=1000)
    rows = {row.label: row for row in compare_scores(["a", "b"], [scores, dropping])}
    assert (rows["dropped"].best, rows["dropped"].verdict) == (0, "a: none")
    assert "flatter b (1,000 dropped" in [*remark_comparison(["a", "b"], [scores, dropping])][1]
    assert len([*remark_comparison(["a", "b"], [scores, scores])]) == 1


def test_names_are_text(tmp_path: Path, runs: list[Path]) -> None:
    run = tmp_path / "hostile"
    run.mkdir()
    for name in ("run.toml", "journal.jsonl", "result.json"):
        text = (runs[0] / name).read_text()
        (run / name).write_text(text.replace("mapper", HOSTILE).replace('"cosine"', f'"{HOSTILE}"'))
    text = render_report([read_reported_run(run)])
    assert HOSTILE in Page(text).words and "script" not in Page(text).tags


def test_a_run_that_did_not_finish_and_ends_in_half_a_line_is_reported(
    tmp_path: Path, runs: list[Path]
) -> None:
    run = tmp_path / "cut"
    run.mkdir()
    (run / "run.toml").write_text((runs[0] / "run.toml").read_text())
    journal = (runs[0] / "journal.jsonl").read_bytes()
    (run / "journal.jsonl").write_bytes(journal[: len(journal) // 2])
    assert "has not finished; its last tick is" in read_reported_run(run).sentences[0]
    (run / "journal.jsonl").unlink()
    assert read_reported_run(run).sentences == ("The run has no tick yet.",)


def test_the_command_writes_the_page_and_names_a_wrong_directory(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs[0]), "-o", str(tmp_path / "r.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'r.html'}\n"
    assert main(["report", str(tmp_path)]) == 2
    assert "is not a run directory" in capsys.readouterr().err
    assert main(["report", str(runs[0]), "-o", str(tmp_path / "none" / "r.html")]) == 2
    assert "--out: " in capsys.readouterr().err


def test_a_page_needs_a_name_that_a_file_can_have_and_replaces_no_device(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    assert main(["report", str(runs[0]), "-o", str(tmp_path / "null")]) == 0
    assert (tmp_path / "null").is_symlink() and not list(tmp_path.glob("*.tmp"))
    for name in ("n" * 300, "half \ud800"):
        assert main(["report", str(runs[0]), "-o", str(tmp_path / name)]) == 2
        assert "cannot be written: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "spec",
    [
        SimulationSpec(),
        SimulationSpec(policy="hpa-cpu", params={"target": 0.9}, guards={"budget": 12}, minutes=9),
        SimulationSpec(initial={"source": 2, "mapper": 1}, profile={"monitor.busy_sees": 1.0}),
        SimulationSpec(initial=3, objective_s=5.0, interval_s=30.0, mode="reactive", seed=7),
    ],
)
def test_the_command_of_a_report_repeats_the_run(spec: SimulationSpec) -> None:
    command = repeat_command(spec.to_json()).split()
    again = spec_of(build_parser().parse_args(command[1:]))
    assert prepare_simulation(again).header() == prepare_simulation(spec).header() | {
        "spec": again.to_json()
    }


def test_a_chart_keeps_its_peaks_and_leaves_gaps() -> None:
    values = np.zeros(5000)
    values[2500] = 7.0
    line = ChartLine(label="x", times=np.arange(5000.0), values=values)
    drawn = draw_chart(Chart(title="t", unit="u", lines=(line,)))
    top = 10 + (190 - 24 - 10) * (1 - 7 / 10)
    assert f" {top:.1f}" in drawn
    values[1000:2000] = np.nan
    assert draw_chart(Chart(title="t", unit="u", lines=(line,))).count("M") > drawn.count("M")


def test_scores_and_names_must_fit() -> None:
    with pytest.raises(InputError):
        compare_scores(["a"], [])
