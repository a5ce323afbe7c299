"""With a real Prometheus: rules, scrapes, queries, and what `rate()` over a gauge does."""

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import prometheus_client
import pytest

from penstock.control.loop import Tick
from penstock.errors import NotReadyError
from penstock.prometheus.metric_map import load_map
from penstock.prometheus.metric_snapshot import read_snapshot
from penstock.prometheus.metrics_server import serve_metrics
from penstock.prometheus.query_client import PrometheusClient
from penstock.prometheus.run_metrics import RunMetrics
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="no Prometheus is installed",
    ),
]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def prometheus(directory: Path, target: int, job: str = "penstock") -> Iterator[PrometheusClient]:
    """Run a Prometheus that scrapes a port of this machine every second."""
    config = directory / "prometheus.yml"
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [
                    {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
                ],
            }
        )
    )
    port = free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    client = PrometheusClient(f"http://127.0.0.1:{port}")
    try:
        wait_for(client, f'up{{job="{job}"}} == 1')
        yield client
    finally:
        process.terminate()
        process.wait(20)


def wait_for(client: PrometheusClient, query: str, seconds: float = 60.0) -> float:
    """Wait until a query has a result; return its first value."""
    until = time.monotonic() + seconds
    while True:
        try:
            if samples := client.query(query):
                return samples[0].value
        except NotReadyError:
            pass
        assert time.monotonic() < until, f"no result: {query}"
        time.sleep(0.2)


def feed_one(tick: Tick) -> RunMetrics:
    metrics = RunMetrics(pipeline="q1", policy="ds2", objective_s=60.0, budget=80)
    metrics.tick(tick)
    return metrics


def test_rules_and_configuration_are_valid(tmp_path: Path) -> None:
    for kind, name in (("rules", "alerts.yml"), ("config", "prometheus.yml")):
        command = ["promtool", "check", kind, str(DEPLOY / "prometheus" / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.copy(DEPLOY / "prometheus" / "alerts.yml", tmp_path)
    shutil.copy(Path(__file__).with_name("alert_cases.yml"), tmp_path)
    command = ["promtool", "test", "rules", str(tmp_path / "alert_cases.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_snapshot_through_prometheus_equals_the_direct_one(tmp_path: Path) -> None:
    ticks = [*prepare_simulation(SimulationSpec(minutes=3)).ticks()]
    tick = next(t for t in reversed(ticks) if t.snapshot is not None)
    with serve_metrics(feed_one(tick), 0) as port, prometheus(tmp_path, port) as client:
        wait_for(client, "penstock_edge_info")
        read = read_snapshot(client, load_map("penstock"), tick.at)
        assert read.offered == tick.snapshot.offered
        for name, direct in tick.snapshot.operators.items():
            # not exported: what only simulators know, and what was asked for
            shown = replace(direct, requested=None, sent=None, input_buffer=None, extra={})
            assert read.operators[name] == shown
        # every panel of the Grafana dashboard is a query that the server can answer
        panels = json.loads((DEPLOY / "grafana" / "penstock.json").read_text())["panels"]
        for target in (target for panel in panels for target in panel["targets"]):
            query = target["expr"].replace("$instance", f"127.0.0.1:{port}")
            client.query(query.replace("$__rate_interval", "5s"))
        running = client.query("sum(penstock_operator_running_replicas)")
        assert running[0].value == sum(tick.status.running.values())


def test_a_change_arrives_within_two_scrapes(tmp_path: Path) -> None:
    ticks = [t for t in prepare_simulation(SimulationSpec(minutes=30)).ticks() if t.snapshot]
    metrics = feed_one(ticks[0])
    with serve_metrics(metrics, 0) as port, prometheus(tmp_path, port) as client:
        wait_for(client, "penstock_ticks_total == 1")
        metrics.tick(ticks[1])
        began = time.monotonic()
        wait_for(client, "penstock_ticks_total == 2")
        assert time.monotonic() - began < 5.0  # a scrape each second, on a busy machine
        read = read_snapshot(client, load_map("penstock"), ticks[1].at)
        expected = ticks[1].snapshot.operators["source"].queue
        assert read.operators["source"].queue == expected


def test_rate_over_a_gauge_takes_a_draining_queue_for_a_growing_one(tmp_path: Path) -> None:
    """The evaluation thesis measured the slope of the lag as `rate()` over a gauge.

    A queue drains from 9,000 by 100 records/s. `deriv` says so; `rate` sees a restart from zero in
    every decrease and adds up the values themselves.
    """
    registry = prometheus_client.CollectorRegistry()
    queue = prometheus_client.Gauge("lag_records", "a queue", ["op"], registry=registry)
    queue.labels("source").set(9000)
    server, thread = prometheus_client.start_http_server(0, addr="127.0.0.1", registry=registry)
    over = threading.Event()
    began = time.monotonic()

    def drain() -> None:
        while not over.wait(0.05):
            queue.labels("source").set(9000 - 100 * (time.monotonic() - began))

    drainer = threading.Thread(target=drain, daemon=True)
    try:
        with prometheus(tmp_path, server.server_port, "lag") as client:
            began = time.monotonic()
            drainer.start()
            time.sleep(9)
            true_slope = wait_for(client, "deriv(lag_records[6s])")
            gauge_rate = wait_for(client, "rate(lag_records[6s])")
            assert true_slope == pytest.approx(-100, rel=0.2)
            assert gauge_rate > 1000  # as if thousands of records/s came in on top
            print(f"deriv {true_slope:.0f} records/s, rate {gauge_rate:.0f} records/s")
    finally:
        over.set()
        drainer.join(5)
        server.shutdown()
        server.server_close()
        thread.join(5)


def test_the_map_of_flink_reads_a_job(tmp_path: Path) -> None:
    """An exporter with the names of Flink's reporter stands for a Flink job."""
    registry = prometheus_client.CollectorRegistry()
    labels = ["job_name", "task_name", "subtask_index"]

    def gauge(name: str, values: dict[tuple[str, int], float]) -> None:
        made = prometheus_client.Gauge(
            f"flink_taskmanager_job_task_{name}", "x", labels, registry=registry
        )
        for (task, subtask), value in values.items():
            made.labels("bids", task, subtask).set(value)

    tasks = [("Source:_Bids", 0), ("Source:_Bids", 1), ("Mapper", 0)]
    gauge("numRecordsIn", dict.fromkeys(tasks, 5.0))
    gauge("numRecordsInPerSecond", {tasks[0]: 0.0, tasks[1]: 0.0, tasks[2]: 200.0})
    gauge("numRecordsOutPerSecond", {tasks[0]: 100.0, tasks[1]: 100.0, tasks[2]: 200.0})
    gauge("busyTimeMsPerSecond", {tasks[0]: 400.0, tasks[1]: 600.0, tasks[2]: 1000.0})
    gauge("idleTimeMsPerSecond", dict.fromkeys(tasks, 0.0))
    gauge("backPressuredTimeMsPerSecond", {tasks[0]: 500.0, tasks[1]: 300.0, tasks[2]: 0.0})
    gauge("buffers_inPoolUsage", {tasks[2]: 1.0})
    gauge("operator_pendingRecords", {tasks[0]: 30.0, tasks[1]: 70.0})
    server, thread = prometheus_client.start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        with prometheus(tmp_path, server.server_port, "flink") as client:
            edges = [("Source:_Bids", "Mapper")]
            mapped = load_map("flink", {"window": "10s", "selector": 'job_name="bids"'}, edges)
            wait_for(client, mapped.queries["offered"])
            snapshot = read_snapshot(client, mapped, 15.0)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
    source, mapper = snapshot.operators["Source:_Bids"], snapshot.operators["Mapper"]
    assert (source.parallelism, mapper.parallelism) == (2, 1)
    assert (source.input_rate, source.busy, source.queue) == (200.0, 0.5, 100.0)
    assert (source.backpressured, source.queue_growth) == (0.4, 0.0)
    assert (mapper.input_rate, mapper.busy, mapper.input_buffer) == (200.0, 1.0, 1.0)
    assert mapper.upstream == ("Source:_Bids",) and snapshot.offered == {"Source:_Bids": 200.0}


def test_a_real_run_is_scraped(tmp_path: Path) -> None:
    """A pipeline on Spark with --metrics-port; needs Java."""
    if shutil.which("java") is None:
        pytest.skip("no Java is installed")
    port = free_port()
    run = tmp_path / "run"
    options = ["--workload", "cosine * 0.001", "--minutes", "10", "--speed-up", "20", "--plain"]
    command = [
        *(sys.executable, "-m", "penstock", "run", str(ROOT / "examples" / "orders.py"), *options),
        *("--out", str(run), "--metrics-port", str(port)),
    ]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        with prometheus(tmp_path, port) as client:
            wait_for(client, "penstock_processed_records_total > 0", 120)
            assert (
                wait_for(client, 'penstock_operator_running_replicas{operator="keep_large"}') >= 1
            )
            wait_for(
                client, "histogram_quantile(0.95, rate(penstock_latency_seconds_bucket[10s])) > 0"
            )
            assert process.poll() is None
            read = read_snapshot(client, load_map("penstock"), 1.0)
            assert read.operators["keep_large"].input_rate is not None
    finally:
        process.terminate()
        process.wait(120)
