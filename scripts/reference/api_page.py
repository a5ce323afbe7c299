"""The page docs/api.md: the public API by purpose, made from signatures and docstrings."""

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from scripts.reference.api_entry import Entry
from scripts.reference.markdown import join_parts, table, wrap

import penstock

INTRODUCTION = """
This page is made from the docstrings of `penstock.__all__` by `make docs`. Everything on it
follows semantic versioning; anything else in the package is private. Times are in seconds, and
their names end in `_s`; rates are in records/s. Tables are Arrow tables with `to_pandas()`.
"""


class Section(NamedTuple):
    """A purpose, and the names that serve it; `module:name` is not in `penstock` itself."""

    title: str
    text: str
    names: Sequence[str]


SECTIONS = (
    Section(
        "Declare a pipeline",
        "A pipeline is declared by decorators, one for each kind of operator. A decorator returns "
        "an `Operator`. `Options` and `Slicing` explain the arguments that decorators share.",
        (
            "Pipeline",
            "Hosts",
            "penstock.pipelines.operator:Operator",
            "penstock.pipelines.operator:Options",
            "penstock.pipelines.stateful.slice_options:Slicing",
        ),
    ),
    Section(
        "Run a pipeline",
        "`pipeline.run(...)` and `penstock.run(pipeline, ...)` are the same.",
        ("run", "penstock.api.options:RunOptions"),
    ),
    Section(
        "Read and write Kafka topics",
        "For `@ingest`, for `@egress`, and for any streaming query. See [Kafka](kafka.md).",
        ("kafka",),
    ),
    Section(
        "Attach to queries that run already",
        "An attachment is a run: everything below works on it, too. See [Attach](attach.md).",
        ("attach", "Attachment", "elastic", "ElasticQuery"),
    ),
    Section(
        "Look at a run",
        "Everything is read from the run directory, so you can watch runs of other processes, too.",
        (
            "Run",
            "open_run",
            "compare",
            "Comparison",
            "RunResult",
            "penstock.runs.result_parts:RunScores",
            "penstock.runs.result_parts:LatencyStatistics",
            "penstock.runs.result_parts:CountStatistics",
            "penstock.runs.result_parts:ObjectiveScore",
            "penstock.runs.spark_result:SparkResult",
            "penstock.runs.spark_result:RecordBalance",
            "penstock.runs.run_status:RunStatus",
            "penstock.api.run_handle:Picture",
        ),
    ),
    Section(
        "Simulate a run",
        "A simulation needs no Spark and takes seconds.",
        ("simulate", "penstock.api.options:SimulationOptions", "Workload"),
    ),
    Section(
        "Ask a policy",
        "A policy is a pure function from snapshots to a decision. [policies.md](policies.md) "
        "lists all policies and guards.",
        ("decide", "Snapshot", "OperatorSnapshot", "Decision", "Target", "Reason"),
    ),
    Section(
        "Write a policy",
        "A policy is one file with a `POLICY`; "
        "[CONTRIBUTING.md](../CONTRIBUTING.md#add-a-policy-in-30-lines) has a complete one. "
        "`--policy ./mine.py` and `policy=POLICY` use it.",
        (
            *("Policy", "Params", "param", "History", "Applied", "RunFacts"),
            *("each_operator", "keep", "PolicyStyle"),
        ),
    ),
    Section(
        "State and stateful functions",
        "Pass one of these functions to `Pipeline.sliced`, or your own, which gets a `State`. "
        "`Names` is one column or several, `Rows` a batch, a table or a dictionary of columns.",
        ("State", "counts", "windows", "sessions", "distinct", "join", "top", "try_batches"),
    ),
    Section(
        "Errors",
        "A mistake in what was given is one `InputError`, raised before anything starts.",
        ("PenstockError", "InputError", "NotReadyError", "RunError"),
    ),
    Section("Version", "", ("__version__",)),
)

#: Public by name, but only the package itself calls them.
HIDDEN = {
    "Pipeline": {"of_kind", "check_scaled", "topics"},
    "Operator": {"topics", "slicing", "fills", "late_to", "scales", "where", "was", "options"},
    "Options": {"within_bounds"},
    "Slicing": {"delay_us", "ttl_us", "inputs"},
    "Run": {"__init__"},
    "Comparison": {"__init__"},
    "Picture": {"__init__"},
    "RunResult": {"from_json"},
    "RunScores": {"from_json"},
    "LatencyStatistics": {"from_json", "to_json"},
    "CountStatistics": {"from_json", "to_json"},
    "ObjectiveScore": {"from_json", "to_json"},
    "SparkResult": {"from_json"},
    "RecordBalance": {"from_json"},
    "Workload": {"of_pieces", "integrals", "when", "plus_steps"},
    "Snapshot": {"topology"},
    "Decision": {"from_json"},
    "Target": {"after", "guarded", "policy_reason"},
    "State": {"__init__", "open", "changes", "is_due"},
}


def api_page() -> str:
    """Return the page."""
    sections = [(section, [_entry(name) for name in section.names]) for section in SECTIONS]
    return (
        join_parts(
            [
                "# The Python API",
                wrap(INTRODUCTION),
                table(
                    ("to", "use"),
                    ((section.title, _links(entries)) for section, entries in sections),
                ),
                *(_section_text(section, entries) for section, entries in sections),
            ]
        )
        + "\n"
    )


def _entry(name: str) -> Entry:
    module, _, attribute = name.rpartition(":")
    thing = getattr(import_module(module) if module else penstock, attribute)
    return Entry(attribute, thing, frozenset(HIDDEN.get(attribute, ())))


def _links(entries: Sequence[Entry]) -> str:
    public = [entry for entry in entries if entry.name in penstock.__all__]
    return ", ".join(f"[`{entry.name}`](#{entry.anchor})" for entry in public)


def _section_text(section: Section, entries: Sequence[Entry]) -> str:
    rows = ((f"[`{entry.name}`](#{entry.anchor})", entry.summary) for entry in entries)
    return join_parts(
        [
            f"## {section.title}",
            wrap(section.text),
            table(("name", "purpose"), rows) if len(entries) > 1 else "",
            *(entry.text() for entry in entries),
        ]
    )
