"""Runs with chains: the option, what a run directory keeps, and what people are shown."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.factories import shop

from penstock.cli.main import main
from penstock.control.loop import Tick
from penstock.core.decision import Decision, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.snapshot_json import parse_snapshot, snapshot_to_json
from penstock.dashboard.graph import draw_graph
from penstock.engines.microbatch.chain_members import MemberRecord, measure_members
from penstock.engines.port import Status
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.chained_pipeline import join_chains
from penstock.reports.decision_text import explain
from penstock.reports.run_command import repeat_command
from penstock.reports.run_statement import start_statement
from penstock.reports.top_view import _operator_table
from penstock.runs.pipeline_changes import check_description
from penstock.runs.preparation import RunObjects
from penstock.runs.run_directory import SPEC_FILE, open_run
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spec import SparkSpec
from penstock.twin.calibration_runs import read_operators

END = "no operator reads ids"


def ready(**more: Any) -> PreparedSparkRun:
    return prepare_spark_run(SparkSpec(pipeline="orders", **more), RunObjects(pipeline=shop()))


def members() -> tuple[Any, ...]:
    first = MemberRecord(name="large", rows_in=100, rows_out=50, busy_s=1.0)
    second = MemberRecord(name="ids", rows_in=50, rows_out=50, busy_s=3.0)
    return measure_members([(first, second)], 10.0)


def test_chains_are_off_unless_somebody_asks_for_them() -> None:
    assert {*ready().topology.order} == {"large", "ids"}
    assert ready(chain="off").spec == ready().spec
    assert "chain" not in ready().spec.to_json()
    assert "chain" not in " ".join(start_statement(ready(), Path("runs/orders")))
    chained = ready(chain="on")
    assert chained.topology.order == ("large",) and chained.pipeline.origin.operators.keys() == {
        "large",
        "ids",
    }
    assert repeat_command(chained.spec.to_json()).endswith("--chain on")
    with pytest.raises(InputError, match="chain: must be"):
        SparkSpec.from_json({"pipeline": "orders", "chain": "yes"})


def test_the_replicas_of_a_chain_are_those_of_its_first_member() -> None:
    assert ready(chain="on", initial=3).initial == {"large": 3}
    with pytest.raises(InputError, match="there is no operator 'ids'"):
        ready(chain="on", initial={"ids": 2})


def test_the_statement_names_members_and_says_why_a_chain_ends() -> None:
    lines = start_statement(ready(chain="on"), Path("runs/orders"))
    assert f"  chains     large > ids (ends there: {END})" in lines


def test_the_description_of_a_run_has_its_chains(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.json"
    check_description(shop(), tmp_path)
    before = path.read_bytes()
    assert check_description(join_chains(shop()), tmp_path) == [
        "changed since the run began: chain large > ids"
    ]
    data = json.loads(path.read_bytes())
    assert data["chains"] == [{"members": ["large", "ids"], "end": END}]
    assert {*data["operators"]} == {"large", "ids"}
    assert check_description(join_chains(shop()), tmp_path) == []
    assert check_description(shop(), tmp_path) == [
        "changed since the run began: no chain large > ids"
    ]
    assert path.read_bytes() == before


def test_a_run_may_continue_with_or_without_chains(tmp_path: Path) -> None:
    def start(**more: Any) -> None:
        prepared = ready(**more)
        with open_run(tmp_path, prepared.spec.to_json(), prepared.header()):
            pass

    start()
    start(chain="on")
    assert tomllib.loads((tmp_path / SPEC_FILE).read_text())["spec"]["chain"] == "on"
    start()
    assert "chain" not in tomllib.loads((tmp_path / SPEC_FILE).read_text())["spec"]
    with pytest.raises(InputError, match="seed"):
        start(chain="on", seed=99)


def test_a_resumed_run_takes_the_option_from_its_directory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--resume", "runs/none", "--chain", "on"]) == 2
    assert "run.toml" in capsys.readouterr().err


def test_the_status_names_the_members_and_the_slowest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = ready(chain="on")
    with open_run(tmp_path, prepared.spec.to_json(), prepared.header()):
        pass
    check_description(prepared.pipeline, tmp_path)
    make_topics(prepared.pipeline, RunLayout(tmp_path))
    main(["status", str(tmp_path)])
    out = capsys.readouterr().out
    assert f"chain large > ids (ends there: {END})\n" in out
    (row,) = [line.split() for line in out.splitlines() if line.startswith("ids ")]
    assert row[:4] == ["ids", "batch", "in", "large"]
    operator = {"members": [dict(member) for member in members()]}
    tick = {"at": 15.0, "running": {"large": 1}, "snapshot": {"operators": {"large": operator}}}
    with (tmp_path / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps(tick) + "\n")
    main(["status", str(tmp_path)])
    out = capsys.readouterr().out
    assert f"chain large > ids (ends there: {END}): ids takes 75 % of its time" in out
    main(["status", str(tmp_path), "--json"])
    (chain,) = json.loads(capsys.readouterr().out)["chains"]
    assert chain["names"] == ["large", "ids"] and chain["members"][1]["share"] == 0.75


def test_the_status_of_a_run_without_chains_does_not_mention_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = ready()
    with open_run(tmp_path, prepared.spec.to_json(), prepared.header()):
        pass
    check_description(prepared.pipeline, tmp_path)
    main(["status", str(tmp_path), "--json"])
    assert "chains" not in json.loads(capsys.readouterr().out)


def test_members_are_in_the_journal_and_in_explanations() -> None:
    operator = OperatorSnapshot(
        name="large", upstream=(), parallelism=1, extra=FrozenDict(members=members())
    )
    snapshot = Snapshot(at=15.0, operators=FrozenDict(large=operator))
    read = parse_snapshot(json.loads(json.dumps(snapshot_to_json(snapshot))))
    decision = Decision(
        at=15.0,
        policy="ds2",
        targets=FrozenDict(large=Target(current=1, wanted=2, reason="too slow")),
    )
    text = explain(decision, read, (), guarded=False)
    assert "chain     large takes 10 records/s, puts out 0.5 for each, 25 % of the time" in text
    assert "ids takes 5 records/s, puts out 1 for each, 75 % of the time" in text
    assert "slowest   ids takes 75 % of its time" in text


def test_views_name_the_slowest_member() -> None:
    operator = OperatorSnapshot(
        name="large", upstream=(), parallelism=1, extra=FrozenDict(members=members())
    )
    alone = OperatorSnapshot(name="alone", upstream=(), parallelism=1)
    snapshot = Snapshot(at=15.0, operators=FrozenDict(large=operator, alone=alone))
    replicas = FrozenDict(large=1, alone=1)
    tick = Tick(
        at=15.0,
        snapshot=snapshot,
        status=Status(at=15.0, requested=replicas, running=replicas),
    )
    large, other = draw_graph(tick, tick, {})["nodes"]
    assert [member["share"] for member in large["members"]] == [0.25, 0.75]
    assert "members" not in other
    table = _operator_table(tick, tick, 120, 5)
    assert [*table.columns[0].cells] == ["large > ids", "alone"]


def test_a_twin_sees_a_chain_as_one_operator(tmp_path: Path) -> None:
    check_description(join_chains(shop()), tmp_path)
    (chain,) = read_operators(tmp_path).values()
    assert (chain.name, chain.upstream, chain.max_replicas) == ("large", (), 4)
    check_description(shop(), tmp_path)
    assert {*read_operators(tmp_path)} == {"large", "ids"}
