"""Every metric that a run exports; docs/metrics.md is made from this table."""

from typing import Literal, NamedTuple

MetricType = Literal["gauge", "counter", "histogram", "info"]
#: Labels of all metrics of one operator.
OPERATOR = ("operator",)


class MetricFamily(NamedTuple):
    """One metric; the name ends with the unit, as OpenMetrics demands."""

    name: str
    type: MetricType
    unit: str
    labels: tuple[str, ...]
    doc: str

    @property
    def exposed_name(self) -> str:
        """The name in queries: counters end in `_total`, information in `_info`.

        >>> find_family("penstock_ticks").exposed_name
        'penstock_ticks_total'
        """
        return self.name + {"counter": "_total", "info": "_info"}.get(self.type, "")


#: Measures of snapshots by the metric that exports them.
MEASURES = {
    "penstock_operator_input_records_per_second": "input_rate",
    "penstock_operator_output_records_per_second": "output_rate",
    "penstock_operator_queue_records": "queue",
    "penstock_operator_queue_growth_records_per_second": "queue_growth",
    "penstock_operator_busy_ratio": "busy",
    "penstock_operator_idle_ratio": "idle",
    "penstock_operator_backpressured_ratio": "backpressured",
    "penstock_operator_cpu_ratio": "cpu",
    "penstock_operator_service_seconds": "service_time_s",
}


def _gauge(name: str, unit: str, doc: str, labels: tuple[str, ...] = ()) -> MetricFamily:
    return MetricFamily(f"penstock_{name}", "gauge", unit, labels, doc)


def _counter(name: str, unit: str, doc: str, labels: tuple[str, ...] = ()) -> MetricFamily:
    return MetricFamily(f"penstock_{name}", "counter", unit, labels, doc)


def _operator(name: str, unit: str, doc: str) -> MetricFamily:
    return _gauge(f"operator_{name}", unit, doc, OPERATOR)


FAMILIES = (
    MetricFamily(
        "penstock_run",
        "info",
        "",
        ("pipeline", "policy", "version"),
        "the run: pipeline, policy, version of Penstock; always 1",
    ),
    MetricFamily(
        "penstock_edge",
        "info",
        "",
        ("operator", "upstream"),
        "an edge of the pipeline, from upstream to operator; always 1",
    ),
    _operator("input_records_per_second", "records_per_second", "records taken for processing"),
    _operator("output_records_per_second", "records_per_second", "records put out"),
    _operator("queue_records", "records", "records that wait in front of the operator"),
    _operator(
        "queue_growth_records_per_second",
        "records_per_second",
        "slope of the queue; negative while it drains",
    ),
    _operator("busy_ratio", "ratio", "share of time in which replicas process records"),
    _operator("idle_ratio", "ratio", "share of time in which replicas wait for records"),
    _operator("backpressured_ratio", "ratio", "share of time in which replicas wait for space"),
    _operator("cpu_ratio", "ratio", "share of the CPU that replicas use"),
    _operator("service_seconds", "seconds", "mean time that one replica needs for one record"),
    _operator("wanted_replicas", "replicas", "replicas that the last decision wants"),
    _operator("requested_replicas", "replicas", "replicas that were requested of the engine"),
    _operator("running_replicas", "replicas", "replicas that run"),
    _operator(
        "max_replicas", "replicas", "the most replicas it may have; absent without a maximum"
    ),
    _gauge(
        "offered_records_per_second", "records_per_second", "load offered to a source", OPERATOR
    ),
    _counter("offered_records", "records", "records offered since the start"),
    _counter("processed_records", "records", "records processed since the start"),
    _counter("dropped_records", "records", "records dropped since the start"),
    _gauge("backlog_records", "records", "records that wait or are in progress"),
    MetricFamily(
        "penstock_latency_seconds",
        "histogram",
        "seconds",
        (),
        "end-to-end latency of records, from due to done",
    ),
    _gauge("objective_seconds", "seconds", "latency objective; absent without one"),
    _counter("objective_missed_records", "records", "records above the objective"),
    _counter(
        "decisions",
        "",
        "decisions about an operator by the reason of the policy, and by what came of it: "
        "change, keep or held (a guard kept the replicas)",
        ("operator", "reason", "outcome"),
    ),
    _counter("changes", "", "changes that were requested, up or down", ("operator", "direction")),
    MetricFamily(
        "penstock_rescale_seconds",
        "histogram",
        "seconds",
        (),
        "time from a request until the replicas run, where the engine reports it",
    ),
    _counter(
        "loop_errors",
        "",
        "errors by kind: unanswered (the policy failed), not-applied, failed, late-tick",
        ("kind",),
    ),
    _counter("ticks", "", "ticks of the control loop"),
    _counter("unmeasured_ticks", "", "ticks without a snapshot"),
    _gauge("last_tick_timestamp_seconds", "seconds", "time of the last tick since 1970"),
    _gauge("executors_running", "", "executors that run; absent without executors"),
    _gauge("executors_requested", "", "executors that were requested; absent without executors"),
    _gauge(
        "budget_replicas", "replicas", "most replicas of all operators; absent without a budget"
    ),
    _gauge("paused_ratio", "ratio", "1 while a person has paused scaling, else 0"),
)
_BY_NAME = {family.name: family for family in FAMILIES}


def find_family(name: str) -> MetricFamily:
    """Return the metric of a name."""
    return _BY_NAME[name]
