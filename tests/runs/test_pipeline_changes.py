"""A run directory follows its pipeline: names move everywhere, a kill in the middle is finished."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipelines.test_changes import NAMES, shop

from penstock.control.loop import Tick
from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.event_time import ColumnTime
from penstock.engines.microbatch.operator_totals import WRITTEN
from penstock.engines.port import Status
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.recovery import migration
from penstock.engines.spark.recovery.checkpoints import read_planned_batch
from penstock.engines.spark.run_layout import RunLayout, write_json
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.runs import spark_run as running
from penstock.runs.journal_parts import Limits
from penstock.runs.observer import RunProgress, StopRequest
from penstock.runs.pipeline_changes import check_description, compare_with_run, earlier_names
from penstock.runs.run_directory import open_run
from penstock.runs.spark_preparation import prepare_spark_run
from penstock.runs.spec import SparkSpec
from penstock.state.state_files import StateFile
from penstock.state.version import Version
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.readers import positions, save_position
from penstock.topics.embedded.segment import Segment
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT, parse_schema

NEW = {"raw": "lines", "parsed": "orders", "parse": "read", "total": "sum"}
METADATA = json.dumps({"batchWatermarkMs": 0, "conf": {"spark.sql.shuffle.partitions": "2"}})


def publish(topic: Topic, writer: str, batch: int, rows: int) -> Segment:
    task = topic.segment_writer()
    columns = {
        field.name: pa.nulls(rows, field.type) for field in topic.schema if field.name != EVENT
    }
    task.write(pa.table({**columns, EVENT: pa.array([0] * rows, TIMESTAMP)}))
    segment = task.close()
    assert segment is not None
    assert topic.publish(writer, batch, [segment], 0.0)
    return segment


def make_run(directory: Path) -> RunLayout:
    """A run that was stopped: two operators have had three batches of ten rows each."""
    check_description(shop(), directory)
    layout = RunLayout(directory.resolve())
    raw = Topic.create(layout.topic("raw"), parse_schema("line string"))
    parsed = Topic.create(
        layout.topic("parsed"),
        shop().topics["parsed"].schema,
        partition=shop().topics["parsed"].partition,
    )
    Topic.create(layout.topic("revenue"), parse_schema("shop string, revenue double"))
    publish(raw, "producer", 0, 40)
    for batch in range(3):
        segment = publish(parsed, "parse", batch, 10)
        put(layout, "parse", batch, "raw", {"parsed": (segment,)})
        put(
            layout,
            "total",
            batch,
            "parsed",
            {},
            Version(slices=64, state_files={0: (state_run(batch),)}),
        )
    save_position(raw.directory, "parse", 30)
    save_position(parsed.directory, "total", 20)
    for name in ("parse", "total"):
        write_json(layout.order(name), {"replicas": 2, "hold": True})
        write_json(layout.config(name), {"name": name})
        layout.plan(name).parent.mkdir(exist_ok=True)
        layout.plan(name).write_bytes(b"a pickle")
    variables = layout.checkpoint("total") / "state" / "0" / "_metadata" / "v2" / "0"
    variables.parent.mkdir(parents=True)
    schema = f"file:{layout.checkpoint('total')}/state/0/_stateSchema/default/0_x"
    variables.write_text(f'v2\n{{"stateSchemaFilePaths":["{schema}"]}}')
    (layout.state("total") / "segments").mkdir(parents=True)
    (layout.state("total") / "segments" / "x.arrow").write_bytes(b"state")
    return layout


def state_run(batch: int) -> StateFile:
    segment = Segment(file="x.arrow", rows=5, bytes=5, crc=0)
    return StateFile(segment=segment, slice=0, first=0, batches=1, rows=5 + batch, bytes=5)


def put(
    layout: RunLayout,
    operator: str,
    batch: int,
    topic: str,
    outputs: dict[str, tuple[Segment, ...]],
    state: Version | None = None,
) -> None:
    start, end = batch * 10, batch * 10 + 10
    offset = json.dumps({"at": {topic: end}, "skips": {topic: [[0, 1, "timeout"]]}})
    logged = f"v1\n{METADATA}\n{offset}"
    record = BatchRecord(
        batch=batch,
        start={topic: start},
        end={topic: end},
        planned_at=0.0,
        committed_at=0.0,
        tasks=(),
        dropped={"timeout": 1},
        outputs=outputs,
        state=state,
        latest={topic: 7} if state else {},
        progress={topic: {"at": ColumnTime(7, None)}},
        open_inputs=(topic,),
        totals={"rows_in": 10, **{f"{WRITTEN}{name}": 5 for name in outputs}},
        offset_log=logged,
    )
    BatchLog(layout.batches(operator)).put(record)
    path = layout.checkpoint(operator) / "offsets" / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(logged)
    path.with_name(f".{batch}.crc").write_bytes(b"crc of the old content")


def renamed() -> Pipeline:
    return shop(names=NEW, was=NAMES)


def texts(run: Path) -> Iterator[tuple[str, str]]:
    """Every small file of a run, by its place in it."""
    for path in sorted(run.rglob("*")):
        if (
            path.is_file()
            and path.suffix not in (".arrow", ".tmp")
            and path.name != "pipeline.json"
        ):
            yield str(path.relative_to(run)), path.read_text(errors="replace")


def check_renamed(layout: RunLayout) -> None:
    raw, parsed = Topic.open(layout.topic("lines")), Topic.open(layout.topic("orders"))
    assert (raw.end, parsed.end) == (40, 30)
    assert (parsed.last_batch("read"), parsed.last_batch("parse")) == (2, None)
    assert raw.last_batch("producer") == 0
    assert sum(batch.num_rows for batch in parsed.read(0, 30)) == 30
    assert (positions(raw.directory), positions(parsed.directory)) == ({"read": 30}, {"sum": 20})
    for operator, topic in (("read", "lines"), ("sum", "orders")):
        planned = read_planned_batch(layout.checkpoint(operator), 2)
        assert planned is not None
        assert planned.ends == {topic: 30}
        log = BatchLog(layout.batches(operator))
        record = log.last()
        assert record is not None
        assert (record.batch, record.start, record.end) == (2, {topic: 20}, {topic: 30})
        assert record.dropped == {"timeout": 1}
        assert (*record.progress, *record.open_inputs) == (topic, topic)
        # the log that Spark has is still the one that the record remembers
        logged = (layout.checkpoint(operator) / "offsets" / "2").read_text()
        assert record.offset_log == logged
        assert [r.batch for r in log.read_new()] == [0, 1, 2]
        assert json.loads(layout.order(operator).read_text())["replicas"] == 2
    state = BatchLog(layout.batches("sum")).last()
    assert state is not None and state.state is not None
    assert (state.latest, state.state.of(0)) == ({"orders": 7}, (state_run(2),))
    written = BatchLog(layout.batches("read")).last()
    assert written is not None
    assert [len(written.outputs[name]) for name in written.outputs] == [1]
    assert list(written.outputs) == ["orders"]
    assert written.totals[f"{WRITTEN}orders"] == 5
    assert (layout.state("sum") / "segments" / "x.arrow").read_bytes() == b"state"
    variables = layout.checkpoint("sum") / "state" / "0" / "_metadata" / "v2" / "0"
    assert f"file:{layout.checkpoint('sum')}/state/0/_stateSchema" in variables.read_text()
    assert not (layout.run / migration.INTENT).exists()
    # no old name is left, neither of a file nor in one; commits from before keep their writer,
    # and every start writes its code anew
    for place, text in texts(layout.run):
        for old in ('"raw"', '"parsed"', '"parse"', '"total"'):
            is_exempt = "/commits/" in place or place.startswith("code/")
            assert old not in text or is_exempt, (place, old)
        assert not {"raw", "parsed", "parse", "total", ".2.crc"} & set(Path(place).parts), place


def test_names_move_through_the_whole_run(tmp_path: Path) -> None:
    layout = make_run(tmp_path)
    notes = check_description(renamed(), tmp_path)
    assert len(notes) == 4
    check_renamed(layout)
    assert earlier_names(tmp_path) == {"parse": "read", "total": "sum"}
    # the declaration may stay, and a second rename remembers both names
    assert check_description(renamed(), tmp_path) == []
    again = shop(names={**NEW, "total": "add"}, was={"total": "sum"})
    check_description(again, tmp_path)
    assert earlier_names(tmp_path) == {"parse": "read", "sum": "add", "total": "add"}
    assert positions(layout.topic("orders")) == {"add": 20}


class KilledError(Exception):
    """Stands for a kill."""


def test_a_kill_at_any_step_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    for kill_at in range(1, 200):
        layout = make_run(tmp_path / str(kill_at))
        steps = 0

        def counted(function: Any, kill_at: int = kill_at) -> Any:
            def call(*args: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps == kill_at:
                    raise KilledError
                return function(*args)

            return call

        with monkeypatch.context() as patched:
            patched.setattr(migration, "_move", counted(migration._move))
            patched.setattr(migration, "replace_file", counted(migration.replace_file))
            patched.setattr(migration.BatchLog, "rewrite", counted(migration.BatchLog.rewrite))
            patched.setattr(migration.Chain, "rewrite", counted(migration.Chain.rewrite))
            try:
                check_description(renamed(), layout.run)
                break
            except KilledError:
                assert compare_with_run(renamed(), layout.run) == []  # it is as good as done
        check_description(renamed(), layout.run)
        check_renamed(layout)
    assert steps > 20  # and each of them was the last one of some start


def test_a_removal_that_was_cut_short_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, less = make_run(tmp_path), shop()
    del less.operators["total"], less.declared["revenue"]

    def kill(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr(migration, "_move", kill)
        check_description(less, tmp_path, ["total"])
    assert layout.batches("total").is_dir()  # allowed, begun, and nothing is done yet
    assert check_description(less, tmp_path) == []
    assert not layout.batches("total").exists() and not layout.checkpoint("total").exists()
    assert (tmp_path / "removed" / "total-1" / "batches" / "total").is_dir()
    assert not (tmp_path / migration.INTENT).exists()


def test_a_new_column_in_front_of_state_touches_no_rows(tmp_path: Path) -> None:
    make_run(tmp_path)
    wider = shop("id long, note string, shop string, price double")
    assert check_description(wider, tmp_path) == [
        "changed since the run began: topic 'parsed' has new columns: note"
    ]


def test_a_removal_is_refused_until_it_is_allowed(tmp_path: Path) -> None:
    layout = make_run(tmp_path)
    less = shop()
    del less.operators["total"], less.declared["revenue"]
    before = dict(texts(tmp_path))
    with pytest.raises(InputError) as error:
        check_description(less, tmp_path)
    assert "operator 'total' was removed (10 rows wait for it, it has 7 rows" in str(error.value)
    assert "--allow-removal total" in str(error.value)
    assert dict(texts(tmp_path)) == before
    with pytest.raises(InputError, match="operator 'totl' was not removed"):
        check_description(less, tmp_path, ["totl"])
    check_description(less, tmp_path, ["total"])
    assert positions(layout.topic("parsed")) == {}
    assert not layout.checkpoint("total").exists()
    # nothing is deleted, and an operator of that name begins anew
    kept = tmp_path / "removed" / "total-1"
    assert (kept / "state" / "total" / "segments" / "x.arrow").is_file()
    assert (kept / "checkpoints" / "total" / "offsets" / "2").is_file()
    assert (kept / "batches" / "total").is_dir()
    assert all(change.is_compatible for change in compare_with_run(shop(), tmp_path))


def test_state_on_rows_that_have_no_order_is_refused(tmp_path: Path) -> None:
    less = shop()
    del less.operators["total"], less.declared["revenue"]
    check_description(less, tmp_path)
    parsed = less.topics["parsed"].schema
    publish(Topic.create(RunLayout(tmp_path).topic("parsed"), parsed), "parse", 0, 3)
    with pytest.raises(InputError, match=r"partitioned by nothing, and .* need shop") as error:
        check_description(shop(), tmp_path)
    assert "another topic" in str(error.value)


def test_a_name_that_the_run_knows_from_before_is_refused(tmp_path: Path) -> None:
    layout = make_run(tmp_path)
    Topic.create(layout.topic("orders"), parse_schema("id long"))
    with pytest.raises(InputError, match="cannot become 'orders'"):
        check_description(shop(names={"parsed": "orders"}, was={"parsed": "parsed"}), tmp_path)
    assert layout.topic("parsed").is_dir()


def test_columns_are_also_compared_with_the_topics_themselves(tmp_path: Path) -> None:
    """Of a topic that a frame operator makes, the description does not know the columns."""
    layout = make_run(tmp_path)
    path = tmp_path / "pipeline.json"
    told = json.loads(path.read_text())
    told["topics"]["parsed"]["schema"] = None
    path.write_text(json.dumps(told))
    found = compare_with_run(shop("id long, shop string, price float"), tmp_path)
    assert [change.verdict for change in found] == ["refused"]
    assert "topic 'parsed': schema: column 'price': expected float, found double" in found[0].what
    assert layout.topic("parsed").is_dir()


# --- what a run remembers of itself

FILE = """
from penstock import Pipeline

pipeline = Pipeline("shop")
pipeline.topic("sales", "id long", external=True)
for topic in ("parsed", "kept"):
    pipeline.topic(topic, "id long")

@pipeline.batches("sales", "parsed", max_replicas=4{was})
def {name}(batch):
    return batch

@pipeline.batches("parsed", "kept", max_replicas=8)
def {other}(batch):
    return batch
"""


def tick_of(at: float, **replicas: int) -> Tick:
    operators = {
        name: OperatorSnapshot(name=name, parallelism=k, service_time_s=0.1)
        for name, k in replicas.items()
    }
    status = Status(
        at=at,
        requested=FrozenDict(replicas),
        running=FrozenDict(replicas),
        replica_s=FrozenDict({name: at * k for name, k in replicas.items()}),
    )
    return Tick(at=at, status=status, snapshot=Snapshot(at=at, operators=FrozenDict(operators)))


def resumed(directory: Path, path: Path, limits: Limits, **changed: str) -> running._Run:
    path.write_text(FILE.format(**{"name": "parse", "other": "keep", "was": "", **changed}))
    prepared = prepare_spark_run(SparkSpec(pipeline=str(path)))
    removed = ["keep"] if (directory / "run.toml").is_file() and "other" in changed else []
    if (directory / "run.toml").is_file():
        check_description(prepared.pipeline, directory, removed)
    with open_run(directory, prepared.spec.to_json(), prepared.header(), limits=limits) as journal:
        check_description(prepared.pipeline, directory)
        run = running._Run(prepared, directory, Silent(), StopRequest(), journal)
        for number in range(1, 4):
            names = {changed.get("name", "parse"): 6, changed.get("other", "keep"): number}
            run._note(tick_of(journal.start_s + 15.0 * number, **names))
    return run


class Silent:
    """Is told, and tells nobody."""

    def say(self, text: str) -> None: ...

    def show_progress(self, progress: RunProgress) -> None: ...

    def tick(self, tick: Tick) -> None: ...


@pytest.mark.parametrize("part_bytes", [10**6, 1])
def test_a_run_remembers_its_replicas_under_their_new_names(
    tmp_path: Path, part_bytes: int
) -> None:
    limits = Limits(part_bytes=part_bytes, older_parts=1)
    place, path = tmp_path / "run", tmp_path / "shop.py"
    resumed(place, path, limits)
    # nothing changed: as many replicas as before, if the pipeline still allows them
    run = resumed(place, path, limits)
    assert run._initial == {"parse": 4, "keep": 3}
    run = resumed(place, path, limits, name="read", was=', was="parse"')
    assert run._initial == {"read": 4, "keep": 3}
    again = resumed(place, path, limits, name="read", was=', was="parse"')
    assert again._initial == {"read": 4, "keep": 3}
    last = again._outcome.last
    assert last is not None and last.at == 4 * 45.0
    # each start of the fake engine reports times of the whole run anew: 45, 90, 135, 180 seconds
    assert last.status.replica_s["read"] == 6 * (45 + 90 + 135 + 180)
    scores = again._outcome.scores()
    assert again._outcome.measures().seconds == 180.0
    assert scores is not None and set(scores.operators) == {"read", "keep"}


def test_what_a_removed_operator_cost_still_counts(tmp_path: Path) -> None:
    place, path = tmp_path / "run", tmp_path / "shop.py"
    resumed(place, path, Limits())
    run = resumed(place, path, Limits(), other="store")
    assert run._initial == {"parse": 4}
    assert run._outcome.last is not None
    spent = run._outcome.last.status.replica_s
    assert spent == {"parse": 6 * (45 + 90), "keep": 3 * 45, "store": 3 * 90}
    scores = run._outcome.scores()
    assert scores is not None and scores.operators["keep"].replicas.max == 3
    # policies see no snapshot of the pipeline as it was
    assert all(set(snapshot.operators) != {"parse", "keep"} for snapshot in run._decider._history)
