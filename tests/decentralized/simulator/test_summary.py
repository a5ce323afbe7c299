"""Figures of a simulation, against values computed by hand."""

from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.summary import (
    accuracy_series,
    correlate,
    find_lag,
    summarize,
    throughput_series,
)
from penstock.decentralized.simulator.timeline import (
    OperatorSeries,
    RecordTotals,
    ScalingAction,
    ScalingTimeline,
)


def timeline(**fields: object) -> ScalingTimeline:
    """Two operators, three steps, one duplication and one deletion that has not ended."""
    first = OperatorSeries([700, 1104, 0], [2, 1, 1], [0, 4, 4], [0, 604, 104])
    second = OperatorSeries([350, 350, 351], [1, 1, 4], [0, 0, 2], [0, 0, 0])
    actions = (
        ScalingAction(operator=0, step=0, copies=2, neighbours=2, messages=6, end_step=2),
        ScalingAction(operator=1, step=2, copies=0, neighbours=2, messages=2),
    )
    return ScalingTimeline(
        setup=DecentralizedSetup(operators=2, instances=2, steps=3, **fields),  # type: ignore[arg-type]
        operators=(first, second),
        actions=actions,
        deciders={(0, 0): 1, (1, 2): 3},
        records=RecordTotals(sent=2855, processed=2700, lost=51, waiting_at_idle=4),
    )


def test_accuracy_is_instances_over_the_ideal_and_throughput_is_bounded_by_one() -> None:
    run = timeline()
    first, second = run.operators
    assert accuracy_series(run, first) == [1.0, 1 / 4, 1.0]  # ideal 2, 4 and at least 1
    assert accuracy_series(run, second) == [1.0, 1.0, 2.0]  # ideal 1, 1, 2
    assert throughput_series(run, first) == [1.0, 500 / 1104, 1.0]


def test_the_summary_adds_up() -> None:
    figures = summarize(timeline())
    assert figures["accuracy"]["mean"] == (1 + 0.25 + 1 + 1 + 1 + 2) / 6
    assert figures["records"]["waiting"] == 2855 - 2700 - 51
    assert figures["nodes"]["min_of_an_operator"] == 1
    assert figures["shortage"] == {
        "share_of_steps": 1 / 6,
        "share_below_load": 1.0,
        "worst_throughput": 500 / 1104,
        "worst_throughput_otherwise": 1.0,
    }
    actions = figures["actions"]
    assert (actions["duplications"], actions["copies"], actions["deletions"]) == (1, 2, 1)
    assert (actions["unfinished"], actions["duplication_steps"]) == (1, 3)
    assert actions["deletion_steps"] is None
    assert figures["traffic"]["messages"] == 10
    assert figures["traffic"]["formula_mismatches"] == 0  # 2 min(2, 1) 2 + 2 = 6


def test_settling_is_measured_only_after_a_jump() -> None:
    assert summarize(timeline())["settling"] == {"steps": None, "overshoot": None}
    # after step 1: 2 of 5, then 5 of 3
    settling = summarize(timeline(load="jump"))["settling"]
    assert settling == {"steps": 2.0, "overshoot": 5 / 3}


def test_a_constant_series_has_neither_correlation_nor_lag() -> None:
    assert correlate([1, 2, 3], [5, 5, 5]) is None
    assert find_lag([1, 2, 3], [5, 5, 5]) is None
    assert correlate([1, 2, 3], [2, 4, 6]) == 1.0
