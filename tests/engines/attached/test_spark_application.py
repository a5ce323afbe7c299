"""What is asked of Spark, and what is made of its answers; Spark itself is made up here."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engines.attached.reports import kafka, make_report

from penstock.engines.attached.spark_application import SparkApplication, SparkQuery
from penstock.engines.attached.spark_tasks import SparkTasks


class Answers:
    """A Java object: every method returns what it was made with."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        if name not in self._answers:
            raise AttributeError(name)
        answer = self._answers[name]
        return answer if callable(answer) else lambda *_: answer


class ScalaList:
    """A Scala sequence."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def size(self) -> int:
        return len(self._items)

    def apply(self, number: int) -> Any:
        return self._items[number]


def make_stage(tasks: int, run_ms: float, longest_ms: float) -> Answers:
    return Answers(
        numCompleteTasks=tasks,
        executorRunTime=run_ms,
        executorCpuTime=run_ms * 5e5,
        numFailedTasks=0,
        attemptId=0,
        longest_ms=longest_ms,
    )


def make_job(status: str, *stages: int) -> Answers:
    return Answers(status=Answers(toString=status), stageIds=list(stages))


class FakeContext:
    """A SparkContext with jobs, stages and executors."""

    def __init__(self) -> None:
        self.jobs: dict[int, Answers] = {}
        self.stages: dict[int, Answers] = {}
        self.executors = [("driver", 0, 0), ("0", 7, 1), ("1", 9, 0)]
        self.settings = {"spark.locality.wait": "500ms"}
        self.is_stopped = False
        store = Answers(
            lastStageAttempt=self.stages.__getitem__,
            taskSummary=self._summarize,
            executorList=lambda _: ScalaList([self._executor(*each) for each in self.executors]),
        )
        backend = Answers(
            getExecutorIds=ScalaList(["0", "1"]), isExecutorActive=lambda name: name == "0"
        )
        context = Answers(
            statusStore=store, schedulerBackend=backend, isStopped=lambda: self.is_stopped
        )
        tracker = Answers(
            getJobIdsForGroup=lambda _: list(self.jobs), getJobInfo=lambda job: self.jobs[job]
        )
        self._jsc = Answers(sc=context, statusTracker=tracker)
        self._gateway = Answers(new_array=lambda _kind, size: [0.0] * size)
        self.printer = Answers(stringOf=lambda items: f"Array({', '.join(map(str, items))})")
        self._gateway.jvm = SimpleNamespace(
            double=0.0,
            java=SimpleNamespace(util=SimpleNamespace(Arrays=Answers(toString=str))),
            scala=SimpleNamespace(runtime=SimpleNamespace(ScalaRunTime=self.printer)),
        )

    def _summarize(self, number: int, _attempt: int, _quantiles: Any) -> Answers:
        longest_ms = self.stages[number].longest_ms()
        times = ScalaList([longest_ms / 10, longest_ms])
        return Answers(isDefined=True, get=Answers(executorRunTime=times))

    def _executor(self, name: str, tasks: int, active: int) -> Answers:
        return Answers(id=name, totalTasks=tasks, activeTasks=active, maxTasks=2)

    def getConf(self) -> Any:  # noqa: N802
        return self.settings


@pytest.fixture
def context() -> FakeContext:
    return FakeContext()


class FakeClock:
    """Every look is a quarter of a minute after the last one."""

    def __init__(self) -> None:
        self.now, self.step = 0.0, 15.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def tasks_of(context: FakeContext, clock: FakeClock | None = None) -> SparkTasks:
    return SparkTasks(context, clock or FakeClock())  # type: ignore[arg-type]


def test_tasks_of_the_heaviest_job_that_has_ended(context):
    context.stages |= {
        1: make_stage(4, 8000, 5000),
        2: make_stage(0, 0, 0),
        3: make_stage(2, 10, 5),
    }
    context.jobs = {10: make_job("SUCCEEDED", 1, 2), 11: make_job("SUCCEEDED", 3)}
    context.jobs[12] = make_job("RUNNING", 99)  # of the next batch
    tasks = tasks_of(context)
    facts = tasks.read("run")
    assert facts is not None
    (stage,) = facts.stages  # a skipped stage has no tasks
    assert (stage.tasks, stage.run_s, stage.cpu_s) == (4, 8.0, 4.0)
    assert (stage.longest_s, stage.median_s) == (5.0, 0.5)
    assert tasks.read("run") is None  # nothing new
    context.jobs[12] = make_job("SUCCEEDED", 3)
    assert tasks.read("run") is not None


def test_tasks_are_read_now_and_then_only(context):
    context.stages[3], context.jobs = make_stage(2, 10, 5), {11: make_job("SUCCEEDED", 3)}
    clock = FakeClock()
    tasks = tasks_of(context, clock)
    assert tasks.read("run") is not None
    clock.step = 1.0
    assert tasks.count_by_executor() != {}
    context.jobs[12] = make_job("SUCCEEDED", 3)
    assert tasks.read("run") is None
    assert tasks.count_by_executor() == {}
    clock.step = 15.0
    assert tasks.read("run") is not None


def test_a_status_store_that_cannot_answer_is_no_error(context):
    context.jobs = {10: make_job("SUCCEEDED", 404)}
    tasks = tasks_of(context)
    assert tasks.read("run") is None
    context.executors = [("0", 1, 1)]
    assert tasks.count_by_executor() == {"0": 1}
    context.executors = [("0",)]  # type: ignore[list-item]
    assert (tasks.count_by_executor(), tasks.count_cores()) == ({}, 1)


def test_the_driver_is_no_executor(context):
    tasks = tasks_of(context)
    assert tasks.count_by_executor() == {"0": 7, "1": 9}
    assert tasks.count_active() == {"0": 1, "1": 0}
    assert tasks.count_cores() == 2


class FakeReport:
    """A StreamingQueryProgress, which prints itself as JSON."""

    def __init__(self, report: dict[str, Any]) -> None:
        self._report = report

    def json(self) -> str:
        return json.dumps(self._report)

    def __str__(self) -> str:
        return json.dumps(self._report, indent=2)


class FakeStream:
    """A StreamingQuery."""

    def __init__(self, name: str | None = "words", run: str = "r1") -> None:
        self.name, self.id, self.runId = name, "7e5f0a11-22", run
        self.reports: list[dict[str, Any]] = []
        self.active, self.error = True, None
        self.trigger, self.checkpoint = "ProcessingTimeTrigger(2000)", "file:/tmp/check%20point"
        self._jsq = Answers(
            recentProgress=lambda: list(map(FakeReport, self.reports)),
            status=Answers(isTriggerActive=True),
            isActive=lambda: self.active,
            streamingQuery=lambda: Answers(
                trigger=Answers(toString=self.trigger), resolvedCheckpointRoot=self.checkpoint
            ),
        )

    def exception(self) -> Exception | None:
        return self.error


def query_of(stream: FakeStream, context: FakeContext) -> SparkQuery:
    return SparkQuery(stream, "words", tasks_of(context))  # type: ignore[arg-type]


def test_only_new_progress_is_read_oldest_first(context):
    context.stages[1], context.jobs[10] = make_stage(2, 100, 60), make_job("SUCCEEDED", 1)
    stream = FakeStream()
    query = query_of(stream, context)
    assert query.read_new() == ()
    stream.reports = [make_report(n, float(n), sources=[kafka([n], [n + 1], [9])]) for n in (0, 1)]
    first = query.read_new()
    assert [report.progress["batchId"] for report in first] == [0, 1]
    assert [report.facts is None for report in first] == [True, False]  # tasks of the last one
    stream.reports.append(make_report(2, 2.0))
    assert [report.progress["batchId"] for report in query.read_new()] == [2]
    assert query.read_new() == ()
    stream.reports += [make_report(n, float(n)) for n in range(3, 60)]  # after a long silence
    assert [report.progress["batchId"] for report in query.read_new()] == list(range(3, 60))


def test_reports_that_print_themselves_in_another_way_are_read_one_by_one(context):
    stream = FakeStream()
    stream.reports = [make_report(n, float(n)) for n in range(3)]
    query = query_of(stream, context)
    context.printer._answers["stringOf"] = "Array(StreamingQueryProgress@1f)"
    assert [report.progress["batchId"] for report in query.read_new()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("trigger", "seconds"),
    [
        ("ProcessingTimeTrigger(2000)", 2.0),
        ("ProcessingTimeTrigger(0)", None),
        ("AvailableNowTrigger", None),
    ],
)
def test_the_trigger_interval_is_known(trigger, seconds, context):
    stream = FakeStream()
    stream.trigger = trigger
    assert query_of(stream, context).trigger_s == seconds


def test_an_ended_query_says_why_in_one_line(context):
    stream = FakeStream()
    query = query_of(stream, context)
    assert (query.is_working(), query.is_active(), query.read_error()) == (True, True, "")
    trace = 'Traceback (most recent call last):\n  File "app.py", line 3, in fail\n'
    stream.active, stream.error = False, Exception(f"The proxy failed. {trace}ValueError: boom\n")
    assert (query.is_active(), query.read_error()) == (False, "ValueError: boom")


def test_files_that_wait_are_counted(context, tmp_path: Path):
    log = tmp_path / "checkpoint" / "sources" / "0"
    log.mkdir(parents=True)
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / "in" / name).touch()
    (log / "0").write_text(f'v1\n{{"path":"file://{tmp_path}/in/a.txt","batchId":0}}\n')
    stream = FakeStream()
    stream.checkpoint = f"file:{tmp_path}/checkpoint"
    query = query_of(stream, context)
    counter = query.make_counter(0, f"FileStreamSource[file:{tmp_path}/in]")
    assert counter is not None
    listing = counter()
    assert listing is not None
    assert (listing.read, listing.waiting, listing.by_batch) == (1, 2.0, {0: 1})
    assert query.make_counter(0, "KafkaV2[Subscribe[bids]]") is None
    stream.checkpoint = "hdfs://far/away"
    assert query.make_counter(0, f"FileStreamSource[file:{tmp_path}/in]") is None


class FakeSession:
    """A SparkSession with active queries."""

    def __init__(self, context: FakeContext, *active: FakeStream) -> None:
        self.sparkContext, self.streams, self.active = context, self, list(active)
        running = lambda: [stream for stream in self.active if stream.active]  # noqa: E731
        self._jsparkSession = Answers(streams=Answers(active=running))


def test_all_active_queries_of_a_session_are_found_also_later_ones(context):
    words, other = FakeStream("words"), FakeStream(None, "r2")
    session: Any = FakeSession(context, words)
    application = SparkApplication(session, None, FakeClock())
    assert [query.name for query in application.find_queries()] == ["words"]
    session.active.append(other)
    assert [query.name for query in application.find_queries()] == ["words", "query-7e5f0a11"]
    words.active = False
    assert [query.is_active() for query in application.find_queries()] == [False, True]
    assert [query.name for query in application.find_queries()] == ["query-7e5f0a11"]
    # the same query in another run keeps its name; another query with that name does not
    session.active.append(FakeStream("words", "r3"))
    stranger = FakeStream("words", "r4")
    stranger.id = "99990000-11"
    session.active.append(stranger)
    names = [query.name for query in application.find_queries()]
    assert names == ["query-7e5f0a11", "words", "words-99990000"]


def test_given_queries_only(context):
    words = FakeStream()
    session: Any = FakeSession(context, words, FakeStream("other", "r2"))
    queries: Any = [words]
    application = SparkApplication(session, queries, FakeClock())
    assert [query.name for query in application.find_queries()] == ["words"]
    assert (application.cores, application.locality_wait_s) == (2, 0.5)
    assert application.count_executors() == 1
    assert application.count_tasks() == {"0": 7, "1": 9}


def test_a_stopped_context_is_not_alive(context):
    session: Any = FakeSession(context)
    application = SparkApplication(session, None, FakeClock())
    assert application.is_alive()
    context.is_stopped = True
    assert not application.is_alive()
    context._jsc = None
    assert not application.is_alive()
