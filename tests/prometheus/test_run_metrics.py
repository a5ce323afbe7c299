"""Metrics of a run: OpenMetrics text whose values are those of its ticks."""

import urllib.request
from collections.abc import Mapping
from dataclasses import replace

import prometheus_client
import pytest
from prometheus_client.openmetrics import exposition
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from penstock.control.loop import Tick
from penstock.core.histogram import merge_histograms
from penstock.engines.events import ControlEvent, FailedEvent, LateTickEvent, RunningEvent
from penstock.errors import InputError
from penstock.prometheus.families import FAMILIES, MEASURES
from penstock.prometheus.metrics_server import serve_metrics
from penstock.prometheus.run_metrics import RunMetrics
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec


@pytest.fixture(scope="module")
def ticks() -> list[Tick]:
    """A quarter of an hour of a simulation."""
    return [*prepare_simulation(SimulationSpec(minutes=15)).ticks()]


def feed(ticks: list[Tick]) -> RunMetrics:
    metrics = RunMetrics(
        pipeline='q"1', policy="ds2", objective_s=60.0, budget=80, clock=lambda: 7.0
    )
    for tick in ticks:
        metrics.tick(tick)
    return metrics


def export(metrics: RunMetrics) -> str:
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    return exposition.generate_latest(registry).decode()


def read(text: str) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Read samples with the strict parser, which checks names and units."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_value_is_the_one_of_the_last_ticks(ticks: list[Tick]) -> None:
    samples = read(export(feed(ticks)))
    last = ticks[-1].status
    measured = next(t.snapshot for t in reversed(ticks) if t.snapshot)
    for metric, measure in MEASURES.items():
        for name, operator in measured.operators.items():
            known = getattr(operator, measure)
            assert samples.get((metric, (("operator", name),))) == known
    for name, running in last.running.items():
        assert samples["penstock_operator_running_replicas", (("operator", name),)] == running
    assert samples["penstock_offered_records_total", ()] == last.offered_records
    assert samples["penstock_ticks_total", ()] == len(ticks)
    latency = merge_histograms([h for t in ticks for h in t.status.latency.values()])
    assert samples["penstock_latency_seconds_count", ()] == latency.count
    assert samples["penstock_latency_seconds_sum", ()] == pytest.approx(latency.total)
    below = samples["penstock_latency_seconds_bucket", (("le", "50.0"),)] / latency.count
    assert below == pytest.approx(1 - latency.share_above(50.0), abs=0.05)
    missed = samples["penstock_objective_missed_records_total", ()]
    assert missed == pytest.approx(latency.share_above(60.0) * latency.count, rel=1e-6)
    decided = sum(
        value for (name, _), value in samples.items() if name == "penstock_decisions_total"
    )
    assert decided == sum(len(t.decision.targets) for t in ticks if t.decision)
    assert samples["penstock_edge_info", (("operator", "sink"), ("upstream", "mapper"))] == 1
    assert samples["penstock_last_tick_timestamp_seconds", ()] == 7.0


def test_all_metrics_are_declared_and_names_end_with_their_units(ticks: list[Tick]) -> None:
    declared = {family.name: family for family in FAMILIES}
    for family in text_string_to_metric_families(export(feed(ticks))):
        known = declared[family.name]
        assert (family.type, family.unit) == (known.type, known.unit)
        for sample in family.samples:
            assert {*sample.labels} - {"le"} <= {*known.labels}
    for family in FAMILIES:
        assert not family.unit or family.name.endswith(family.unit)
        assert len({f.name for f in FAMILIES}) == len(FAMILIES)


def test_events_are_counted(ticks: list[Tick]) -> None:
    events = (
        RunningEvent(at=1.0, operator="map", replicas=2, after_s=0.4),
        FailedEvent(at=1.0, error="x"),
        LateTickEvent(at=1.0, missed_ticks=2),
        ControlEvent(at=1.0, action="pause", who="a", asked_at=0.0, number=1),
    )
    tick = replace(ticks[0], status=replace(ticks[0].status, events=events), decision=None)
    samples = read(export(feed([tick])))
    assert samples["penstock_rescale_seconds_bucket", (("le", "0.5"),)] == 1
    assert samples["penstock_paused_ratio", ()] == 1
    for kind in ("failed", "late-tick", "unanswered"):
        assert samples["penstock_loop_errors_total", (("kind", kind),)] == 1


def test_metrics_of_a_run_without_ticks_are_readable() -> None:
    samples = read(export(RunMetrics(pipeline="p", policy="x")))
    assert samples["penstock_ticks_total", ()] == 0


def test_the_server_serves_both_formats(ticks: list[Tick]) -> None:
    with serve_metrics(feed(ticks), 0) as port:
        address = f"http://127.0.0.1:{port}/metrics"
        plain = urllib.request.urlopen(address, timeout=5).read().decode()
        assert "# TYPE penstock_ticks_total counter" in plain
        ask = urllib.request.Request(address, headers={"Accept": "application/openmetrics-text"})
        text = urllib.request.urlopen(ask, timeout=5).read().decode()
        assert text.endswith("# EOF\n") and read(text)
        with pytest.raises(InputError, match="cannot listen"), serve_metrics(feed([]), port):
            pass
