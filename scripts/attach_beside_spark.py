"""Compare `attach` with Spark's dynamic allocation: python scripts/attach_beside_spark.py DIR

The same query gets the same rising and falling load twice, on `local-cluster` with one to three
executors: once attached, once with `spark.dynamicAllocation.enabled`. Prints a table and writes
load.json and load.svg to DIR. Takes about 20 minutes; the machine should do nothing else.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

#: Seconds and rows/s of each part of the load; the first part is not measured.
LOAD = ((90.0, 40), (60.0, 40), (75.0, 110), (100.0, 200), (75.0, 110), (150.0, 40))
LEAD_S, WHOLE_S = LOAD[0][0], sum(seconds for seconds, _ in LOAD)
#: Seconds between two files; every row waits this long for a service.
FILE_S, WAIT_S = 0.25, 0.010
FRESHNESS_S, EXECUTORS = 20.0, (1, 3)
KINDS = {"attach": "Penstock, attached", "spark": "Spark's dynamic allocation"}
SPARK_SETTINGS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": str(EXECUTORS[0]),
    "spark.dynamicAllocation.maxExecutors": str(EXECUTORS[1]),
}


def find_rate(second: float) -> int:
    """Return the rows/s of a second of the load."""
    ends = accumulate(seconds for seconds, _ in LOAD)
    return next((rate for end, (_, rate) in zip(ends, LOAD, strict=True) if second < end), 0)


@dataclass(slots=True)
class Course:
    """What one run has shown; times are seconds since it began."""

    kind: str
    #: (time, rows) of each file.
    files: list[tuple[float, int]]
    #: (begin, end, rows) of each batch.
    batches: list[tuple[float, float, int]]
    #: (time, executors).
    executors: list[tuple[float, int]]
    load_average: float = 0.0

    def ages(self) -> list[tuple[float, float, int]]:
        """Return (arrival, age in seconds when processed, rows) of each file.

        Files are read in the order of their arrival, so the rows of batches say which ones.
        """
        ends = list(accumulate(rows for _, _, rows in self.batches))
        number, read, found = 0, 0, []
        for arrived, rows in self.files:
            read += rows
            while number < len(ends) and ends[number] < read:
                number += 1
            if number == len(ends):
                break
            found.append((arrived, self.batches[number][1] - arrived, rows))
        return found

    def summarize(self) -> dict[str, float]:
        """Return the figures of the measured part."""
        ages = [(age, rows) for at, age, rows in self.ages() if at >= LEAD_S]
        every = np.repeat([age for age, _ in ages], [rows for _, rows in ages])
        offered = sum(rows for at, rows in self.files if at >= LEAD_S)
        counts = [count for at, count in self.executors if at >= LEAD_S]
        late = int((every > FRESHNESS_S).sum()) + offered - len(every)
        return {
            "executor_minutes": round(sum(counts) / 60, 1),
            "executors_max": max(counts),
            "executors_last": counts[-1],
            "age_p50_s": round(float(np.quantile(every, 0.5)), 1),
            "age_p99_s": round(float(np.quantile(every, 0.99)), 1),
            "age_max_s": round(float(every.max()), 1),
            "share_late": round(late / offered, 4),
        }


def write_files(home: Path, course: Course, began: float) -> None:
    """Write the load, a file at a time."""
    owed, number = 0.0, 0
    while (now := time.time() - began) < WHOLE_S:
        owed += find_rate(now) * FILE_S
        rows, owed = int(owed), owed - int(owed)
        (home / "next.tmp").write_text("row\n" * rows)
        (home / "next.tmp").rename(home / "in" / f"{number:06}.txt")
        course.files.append((round(time.time() - began, 3), rows))
        number += 1
        time.sleep(max(0.0, began + number * FILE_S - time.time()))


def start_query(spark: Any, home: Path) -> Any:
    """Start the query: every row waits for a service."""
    wait_s = WAIT_S

    def call(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(wait_s * batch.num_rows)
            yield batch

    rows = spark.readStream.text(str(home / "in")).mapInArrow(call, "value string")
    stream = rows.writeStream.format("noop").queryName("service")
    stream = stream.option("checkpointLocation", str(home / "checkpoint"))
    return stream.trigger(processingTime="2 seconds").start()


def run(kind: str, home: Path) -> None:
    """Run the load once, and write what happened to course.json."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    import penstock  # noqa: PLC0415

    (home / "in").mkdir(parents=True)
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS[1]},1,1024]")
    settings = {
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # a task for each file
        "spark.sql.files.maxPartitionBytes": "1000",
        "spark.sql.files.openCostInBytes": "1000",
        **(SPARK_SETTINGS if kind == "spark" else {}),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    course, began = Course(kind, [], [], []), time.time()
    writer = threading.Thread(target=write_files, args=(home, course, began), daemon=True)
    writer.start()
    query = start_query(spark, home)
    if kind == "attach":
        penstock.attach(
            spark,
            query,
            freshness=FRESHNESS_S,
            executors=EXECUTORS,
            policy="ds2",
            interval_s=5,
            out=home / "run",
        )
    watch(spark, query, course, began)
    query.stop()
    spark.stop()
    text = {name: getattr(course, name) for name in Course.__slots__}
    (home / "course.json").write_text(json.dumps(text))


def watch(spark: Any, query: Any, course: Course, began: float) -> None:
    """Note executors and batches until the load is over."""
    batches: dict[int, tuple[float, float, int]] = {}
    loads = []
    while (now := time.time() - began) < WHOLE_S + FRESHNESS_S:
        nodes = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
        if now < WHOLE_S:
            course.executors.append((round(now, 1), nodes - 1))
        loads.append(os.getloadavg()[0])
        for progress in query.recentProgress[-20:]:
            if progress["numInputRows"]:
                begin = np.datetime64(progress["timestamp"].rstrip("Z"), "ms").astype(float) / 1000
                seconds = progress["durationMs"]["triggerExecution"] / 1000
                begin = round(begin - began, 3)
                batches[progress["batchId"]] = (begin, begin + seconds, progress["numInputRows"])
        time.sleep(1.0)
    course.batches = [batches[number] for number in sorted(batches)]
    course.load_average = round(float(np.median(loads)), 1)


def describe(courses: Sequence[Course]) -> str:
    """Return a table of both runs."""
    figures = {course.kind: course.summarize() for course in courses}
    rows = {
        "executor minutes": "executor_minutes",
        "most executors": "executors_max",
        "executors at the end": "executors_last",
        "age of rows, median": "age_p50_s",
        "age of rows, 99 %": "age_p99_s",
        "age of rows, most": "age_max_s",
        f"rows older than {FRESHNESS_S:g} s": "share_late",
    }
    lines = ["| | " + " | ".join(KINDS[kind] for kind in figures) + " |", "|---|---|---|"]
    for title, name in rows.items():
        cells = [_format(name, shown[name]) for shown in figures.values()]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    loads = " and ".join(f"{course.load_average:g}" for course in courses)
    return "\n".join([*lines, "", f"load average of the machine: {loads}"])


def _format(name: str, value: float) -> str:
    if name == "share_late":
        return f"{value:.1%}"
    return f"{value:g} s" if name.endswith("_s") else f"{value:g}"


def draw(courses: Sequence[Course], target: Path) -> None:
    """Draw the load, executors and the age of rows of both runs."""
    from penstock.reports.canvas import (  # noqa: PLC0415
        draw_level,
        head,
        new_figure,
        save,
        style_axes,
    )

    figure = new_figure(6.0)
    load, executors, age = figure.subplots(3, 1, sharex=True, height_ratios=(1, 1.2, 1.6))
    seconds = np.arange(LEAD_S, WHOLE_S)
    rates = [find_rate(second) for second in seconds]
    load.fill_between((seconds - LEAD_S) / 60, rates, step="post", color="#C9D8E6", linewidth=0)
    style_axes(load, "", "rows/s")
    handles = {}
    for course, colour in zip(courses, ("#007A5A", "#D55E00"), strict=True):
        measured = [(at, count) for at, count in course.executors if at >= LEAD_S]
        minutes = [(at - LEAD_S) / 60 for at, _ in measured]
        counts = [count for _, count in measured]
        handles[KINDS[course.kind]] = executors.step(minutes, counts, color=colour, lw=2)[0]
        ages = [(at, each) for at, each, _ in course.ages() if at >= LEAD_S]
        age.plot([(at - LEAD_S) / 60 for at, _ in ages], [each for _, each in ages], color=colour)
    style_axes(executors, "", "executors")
    executors.set_ylim(0, EXECUTORS[1] + 0.3)
    style_axes(age, "", "age of rows, s")
    age.set_ylim(0, max(age.get_ylim()[1], 1.1 * FRESHNESS_S))
    age.set_xlim(0, (WHOLE_S - LEAD_S) / 60)
    draw_level(age, FRESHNESS_S, "objective")
    age.set_xlabel("minutes")
    head(figure, "The same load twice", handles)
    save(figure, target)


def main(out: Path) -> None:
    """Run both, one after the other; print the table."""
    courses = []
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    for kind in KINDS:
        words = [sys.executable, __file__, str(out / kind), kind]
        subprocess.run(words, check=True, env=environment)
        courses.append(Course(**json.loads((out / kind / "course.json").read_text())))
    print(describe(courses))
    data = {course.kind: course.summarize() for course in courses}
    (out / "load.json").write_text(json.dumps(data, indent=2) + "\n")
    draw(courses, out / "load.svg")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        run(sys.argv[2], Path(sys.argv[1]))
