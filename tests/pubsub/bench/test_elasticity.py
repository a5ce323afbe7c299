"""Elasticity experiments: their load, periods, tables and pictures; no Spark."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.cli.main import main
from penstock.errors import InputError
from penstock.pipelines.host_declaration import Hosts
from penstock.pubsub.bench.broker_traffic import NoticeTimes
from penstock.pubsub.bench.elasticity import ElasticitySpec
from penstock.pubsub.bench.elasticity_result import (
    ElasticityResult,
    HostSample,
    compute_mean_load,
    cut_periods,
)
from penstock.pubsub.bench.load import BenchSpec
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.server.engine_status import read_host_loads
from penstock.reports.elasticity_text import (
    draw_elasticity,
    elasticity_json,
    elasticity_text,
    write_elasticity_page,
)
from penstock.runs.run_directory import JOURNAL
from penstock.workloads.workload import Workload

LOAD = BenchSpec(
    subscriptions=500,
    attributes=4,
    match_rate=0.01,
    is_encrypted=True,
    publications=1,
    slices=8,
    threads=1,
    rounds=1,
    seed=3,
    backend=Backend.NUMPY,
)
SPEC = ElasticitySpec(
    figure=8,
    seconds=240.0,
    peak_per_s=100.0,
    hosts=Hosts(start=1, most=4, share=0.1),
    period_s=10.0,
    load=LOAD,
)
SAMPLES = [
    HostSample(at_s=1.0, loads=(0.9,)),
    HostSample(at_s=9.0, loads=(0.4, 0.6)),
    HostSample(at_s=15.0, loads=(0.1, 0.1)),
    HostSample(at_s=25.0, loads=(0.1,)),
]
TIMES = NoticeTimes(due_s=np.array([2.0, 3.0, 12.0]), done_s=np.array([4.0, 7.0, 12.5]))


def result() -> ElasticityResult:
    load = Workload.of_steps([2.0, 1.0], step_s=10.0)
    return ElasticityResult(
        periods=cut_periods(load, SAMPLES, TIMES, 10.0),
        published=3,
        hosts_first=1,
        hosts_most=2,
        hosts_last=1,
        moves=5,
        cpu_mean=compute_mean_load(SAMPLES),
        delay_p50_s=2.0,
        delay_p95_s=4.0,
        checked_publications=3,
        wrong_publications=0,
        load_average=7.0,
    )


def test_both_loads_are_shortened_and_so_are_the_times_of_the_rules() -> None:
    load = SPEC.make_workload()
    assert load.duration_s == pytest.approx(240)
    assert (load.rate(120), load.rate(48)) == (pytest.approx(100), pytest.approx(50))
    assert SPEC.hold_s == 6.0  # 3 s would be less than two snapshots
    assert replace(SPEC, seconds=1200.0).hold_s == 15.0
    market = replace(SPEC, figure=9).make_workload()
    assert market.duration_s == pytest.approx(240)
    assert 90 <= market.peak_rate <= 110
    assert "hold_s=6" in SPEC.list_run_options()


def test_periods_have_hosts_loads_and_the_delays_of_what_was_due_in_them() -> None:
    first, second, third = result().periods
    assert (first.offered_per_s, second.offered_per_s, third.offered_per_s) == (2.0, 1.0, 0.0)
    assert (first.notified_per_s, second.notified_per_s) == (0.2, 0.1)
    assert (first.hosts, second.hosts, third.hosts) == (2, 2, 1)
    assert (first.cpu_min, first.cpu_max) == (0.4, 0.9)
    assert first.cpu_mean == pytest.approx(0.7)
    assert (first.delay_mean_s, first.delay_std_s) == (3.0, 1.0)
    assert third.delay_mean_s is None
    assert compute_mean_load(SAMPLES) == pytest.approx(0.3)  # while there are several hosts
    assert compute_mean_load(SAMPLES[:1]) is None


def test_table_picture_and_page_show_the_result(tmp_path: Path) -> None:
    text = elasticity_text(SPEC, result())
    assert "hosts: 1 at first, 2 at most, 2 when the load ended, 1 afterwards" in text
    assert "(paper: at most 15, 1 in the end)" in text
    assert "emulated: a host is a name with 0.1 of a core" in text
    assert elasticity_json(SPEC, result())["periods"][0]["hosts"] == 2
    picture, page = tmp_path / "pictures" / "eight.svg", tmp_path / "page.md"
    picture.parent.mkdir()
    draw_elasticity(SPEC, result(), picture)
    assert "hosts" in picture.read_text()
    page.write_text("a\n<!-- penstock pubsub elasticity --figure 8 -->\nold\n<!-- end -->\nz\n")
    write_elasticity_page(page, SPEC, result(), picture)
    written = page.read_text()
    assert "(pictures/eight.svg)" in written
    assert "old" not in written
    assert written.startswith("a\n") and written.endswith("z\n")
    with pytest.raises(InputError, match="has no place for the table"):
        write_elasticity_page(page, replace(SPEC, figure=9), result(), None)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--figure", "7"], "must be 8 or 9, got 7"),
        (["--figure", "8", "--seconds", "5"], "must be from 30 to 100000"),
        (["--figure", "8", "--picture", "a.txt"], "must end in .svg"),
        (["--figure", "8", "--share", "2"], "must be above 0 and at most 1"),
    ],
)
def test_wrong_options_are_one_message(
    options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pubsub", "elasticity", *options]) == 2
    assert problem in capsys.readouterr().err


def test_hosts_that_have_just_started_show_no_load(tmp_path: Path) -> None:
    assert read_host_loads(tmp_path) == {}
    homes = {"match/0": "h1", "match/1": "h2"}
    table = {"version": 1, "hosts": ["h1", "h2"], "homes": homes, "started": 2}
    (tmp_path / "hosts.json").write_text(json.dumps(table))
    assert read_host_loads(tmp_path) == {"h1": 0.0, "h2": 0.0}
    slices = {"match/0": {"cpu": 0.3, "memory": 0}}
    tick = {"snapshot": {"hosts": {"h1": {"slices": slices}}}}
    (tmp_path / JOURNAL).write_text(f"{json.dumps(tick)}\n")
    assert read_host_loads(tmp_path) == {"h1": 0.3, "h2": 0.0}
