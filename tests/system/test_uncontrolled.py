"""A run without a controller: grows under load, shrinks after it, survives a kill."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands.test_run import nothing_left_of, started

from penstock.core.reasons import Reason
from penstock.engines.microbatch.operator_votes import count_replicas, read_votes
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.run_layout import RunLayout
from penstock.runs.run_directory import read_run

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PIPELINE = """
import time
from penstock import Pipeline, counts

PIPELINE = Pipeline("shop", objective_s=4)
PIPELINE.topic("placed", "id long, city string")
PIPELINE.topic("checked", "id long, city string")

@PIPELINE.produces("placed", arrivals="deterministic")
def rows(first_id, due):
    ids = range(first_id, first_id + len(due))
    return {"id": ids, "city": [f"c{i % 40}" for i in ids]}

@PIPELINE.batches(reads="placed", writes="checked", max_replicas=3)
def check(batch):
    time.sleep(0.03 * batch.num_rows)
    return batch

PIPELINE.sliced(reads="checked", writes="totals", name="count", max_replicas=3)(counts(by="city"))
"""
#: 10 s of little, 10 s of more than one replica carries, 20 s of little.
LOAD = "steps(rates=2/60/2/2, interval=1)"


def records(run: Path, operator: str) -> list[Any]:
    place = RunLayout(run).batches(operator)
    if not place.is_dir():  # a log would make it, and a run wants an empty directory
        return []
    log = BatchLog(place)
    return [record for number in log.numbers() if (record := log.get(number)) is not None]


def test_replicas_grow_and_shrink_by_their_own_votes(tmp_path: Path) -> None:
    run, pipeline = tmp_path / "run", tmp_path / "shop.py"
    pipeline.write_text(PIPELINE)
    options = [str(pipeline), "--controller", "none", "--workload", LOAD, "--speed-up", "6"]
    options += ["--minutes", "4", "--interval", "6", "--out", str(run), "--plain"]

    with started(run, *options) as command:
        command.until(lambda: any(r.replicas > 1 for r in records(run, "check")))
        command.process.kill()
        command.process.wait()
    assert nothing_left_of(run)
    before = records(run, "check")

    with started(run, *options) as command:  # the same command goes on
        code, result = command.ends()
    assert code == 0, command.err
    assert (result["records"]["lost"], result["records"]["doubled"]) == (0, 0)
    assert result["records"]["drained"]

    check_votes(run, "check", before)
    assert records(run, "check")[-1].replicas == 1
    check_journal(run)


def check_votes(run: Path, operator: str, before: list[Any]) -> None:
    """Each batch has the replicas that the votes of the batch before it add up to."""
    rules = OperatorConfig.load(RunLayout(run), operator).voting
    assert rules is not None
    kept = records(run, operator)
    assert kept[: len(before)] == before  # votes of the first start still count
    for first, second in pairwise(kept):
        assert second.replicas == count_replicas(first, rules)
        assert 1 <= second.replicas <= 3
    voters = [(record, vote) for record in kept for vote in read_votes(record)]
    assert all(vote.siblings == record.replicas for record, vote in voters)
    assert max(record.replicas for record in kept) > 1


def check_journal(run: Path) -> None:
    """The journal tells what replicas decided, and why."""
    journal = read_run(run).journal
    decisions = [tick.decision for tick in journal.ticks if tick.decision is not None]
    targets = [decision.targets["check"] for decision in decisions]
    reasons = {target.proposal_reason for target in targets}
    assert {Reason.INSTANCES_DUPLICATE, Reason.INSTANCES_STOP} <= reasons
    grown = next(t for t in targets if t.proposal_reason == Reason.INSTANCES_DUPLICATE)
    assert "replicas decided alone" in grown.why
    assert sum(tick.applied for tick in journal.ticks) >= 2
    assert json.loads((run / "result.json").read_text())["rescales"] >= 2
