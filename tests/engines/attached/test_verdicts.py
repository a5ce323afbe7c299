"""Each verdict needs its evidence, and names its culprit."""

from dataclasses import replace

import pytest
from tests.engines.attached.reports import kafka, make_report

from penstock.engines.attached.progress import QueryProgress, parse_progress
from penstock.engines.attached.task_facts import StageFacts, TaskFacts
from penstock.engines.attached.verdicts import Culprit, QueryFacts, judge
from penstock.engines.query_events import ExecutorEffectEvent


def batches(
    *,
    work_s: float = 5.0,
    every_s: float = 6.0,
    rows: tuple[int, ...] = (900, 1000, 1100, 950, 1050, 1000),
    steps: dict[str, int] | None = None,
    state: dict[str, int] | None = None,
) -> tuple[QueryProgress, ...]:
    """Return batches that begin every `every_s`; `steps` are milliseconds of more steps."""
    found = []
    for number, count in enumerate(rows):
        source = kafka([0], [count], [count])
        report = make_report(number, number * every_s, work_s=work_s, sources=[source])
        report["durationMs"] |= steps or {}
        report["durationMs"]["triggerExecution"] += sum((steps or {}).values())
        report["stateOperators"] = [state] if state else []
        progress = parse_progress(report)
        assert progress is not None
        found.append(progress)
    return tuple(found)


def stage(**fields: float) -> tuple[TaskFacts, ...]:
    values = {"tasks": 64, "run_s": 18.0, "cpu_s": 9.0, "longest_s": 0.4, "median_s": 0.3}
    return (TaskFacts(stages=(StageFacts(**{**values, **fields}),)),)  # type: ignore[arg-type]


#: Four executors that share 64 even tasks.
HEALTHY = QueryFacts(progress=batches(), tasks=stage(), executors=4, cores=1, backlog_rows=5000.0)
GAIN = ExecutorEffectEvent(
    at=9.0, before=1, executors=4, speed_before=300.0, speed=1000.0, batches=10
)


def culprits(facts: QueryFacts) -> list[Culprit]:
    return [verdict.culprit for verdict in judge(facts)]


def test_a_query_that_more_executors_would_help_has_no_verdict():
    assert culprits(replace(HEALTHY, effect=GAIN)) == []


@pytest.mark.parametrize(
    ("change", "culprit", "evidence"),
    [
        pytest.param(
            {"tasks": stage(run_s=8.0, longest_s=4.5, median_s=0.05)},
            Culprit.HOT_PARTITION,
            "4.5 s",
            id="one task takes as long as the batch",
        ),
        pytest.param(
            {"tasks": stage(tasks=2, run_s=9.0, longest_s=4.6, median_s=4.4)},
            Culprit.FEW_PARTITIONS,
            "2 tasks",
            id="two tasks on four slots",
        ),
        pytest.param(
            {"progress": batches(work_s=1.0, steps={"latestOffset": 4000, "walCommit": 200})},
            Culprit.DRIVER,
            "latestOffset",
            id="listing takes four of five seconds",
        ),
        pytest.param(
            {"progress": batches(state={"numRowsTotal": 9, "commitTimeMs": 14_000})},
            Culprit.STATE_COMMIT,
            "14.0 of 18.0 task seconds",
            id="most task seconds are commits of state",
        ),
        pytest.param(
            {"effect": replace(GAIN, speed=310.0)},
            Culprit.SINK,
            "300 -> 310 rows/s",
            id="four times the executors brought nothing",
        ),
        pytest.param(
            {"progress": batches(work_s=1.0, every_s=10.0, rows=(500,) * 6)},
            Culprit.SOURCE_LIMIT,
            "500 rows",
            id="every batch reads the same and waits, while rows wait",
        ),
        pytest.param(
            {
                "progress": batches(state={"numRowsTotal": 9, "commitTimeMs": 10}),
                "idle_executors": 1,
                "locality_wait_s": 3.0,
            },
            Culprit.LOCALITY_WAIT,
            "1 of 4 executors",
            id="state keeps tasks on old executors",
        ),
    ],
)
def test_each_culprit_is_named_with_its_evidence(change, culprit, evidence):
    verdicts = judge(replace(HEALTHY, **change))
    assert [verdict.culprit for verdict in verdicts] == [culprit]
    assert evidence in verdicts[0].evidence
    assert verdicts[0].advice


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"is_behind": False}, id="a query that keeps up"),
        pytest.param({"progress": batches()[:4]}, id="too few batches"),
    ],
)
def test_without_need_or_evidence_there_is_no_verdict(change):
    hot = stage(tasks=2, run_s=8.0, longest_s=4.5, median_s=0.05)
    assert judge(replace(HEALTHY, tasks=hot, **change)) == ()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"tasks": ()}, id="tasks are not known"),
        pytest.param(
            {"progress": batches(work_s=0.1, steps={"latestOffset": 500})},
            id="short batches are mostly overhead, which is no news",
        ),
        pytest.param(
            {"progress": batches(work_s=5.0, every_s=5.2, rows=(500,) * 6)},
            id="a read limit with batches back to back: more executors read more often",
        ),
        pytest.param(
            {"progress": batches(work_s=1.0, every_s=10.0, rows=(500,) * 6), "backlog_rows": 0.0},
            id="the same rows in every batch, but none waits",
        ),
        pytest.param(
            {"effect": replace(GAIN, before=4, executors=1, speed=100.0)},
            id="fewer executors are slower, as they should be",
        ),
        pytest.param(
            {"idle_executors": 1, "locality_wait_s": 3.0}, id="idle executors, but no state"
        ),
        pytest.param(
            {
                "progress": batches(state={"numRowsTotal": 9, "commitTimeMs": 10}),
                "idle_executors": 1,
                "locality_wait_s": 0.0,
            },
            id="state, but tasks do not wait",
        ),
    ],
)
def test_what_looks_similar_is_no_verdict(change):
    assert culprits(replace(HEALTHY, **change)) == []
