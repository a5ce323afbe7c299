"""Let `penstock run` read files under a load that changes: nothing may grow or get lost.

    python -m tests.tools.soak --minutes 10

Prints the first and the last quarter after a warm-up, and by how much a line through the last
70 % of the samples rises. Each measure has a bound; below all of them the run is flat. Then the
run is stopped, and every row that was written must have been processed once.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from tests.tools.file_source import FileSource
from tests.tools.processes import MARK, marked

from penstock.core.trend import slope
from penstock.topics.embedded.topic import Topic

PENSTOCK = (sys.executable, "-m", "penstock")
PIPELINE = Path(__file__).with_name("soak_pipeline.py")

SAMPLE_S = 10.0
#: Rows/s that arrive on average; by turns less and more, so that replicas change.
RATE = 300.0
WAVE, WAVE_S = 0.6, 120.0
#: Seconds between two files. Spark keeps about 100 bytes of every file that it ever read.
FILE_EVERY_S = 5.0
#: The share of the run that is judged; before it workers start and logs fill up.
JUDGED = 0.7
#: A rise over the judged part of less than this share of the mean is flat. Replicas and queues
#: are shown only, and the journal, which grows until its oldest parts are removed.
BOUNDS = {
    "disk_mb": 0.15,
    "files": 0.10,
    "driver_mb": 0.10,
    "jvm_mb": 0.25,
    "workers_mb": 0.20,
    "driver_descriptors": 0.10,
    "jvm_descriptors": 0.15,
}
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a run uses at one moment.

    Memory is resident, shared pages divided: of workers all of it, since they map files of
    state; of the driver and the JVM what no file backs.
    """

    at_s: float
    disk_mb: float
    files: int
    driver_mb: float
    jvm_mb: float
    workers_mb: float
    workers: int
    driver_descriptors: int
    jvm_descriptors: int
    #: Of the journal, with its older parts.
    journal_mb: float
    #: Replicas of all operators, and rows that wait.
    replicas: int
    queue: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one measure went."""

    measure: str
    first: float
    last: float
    #: Rise of the line through the judged samples, as a share of their mean.
    rise: float
    bound: float | None

    @property
    def verdict(self) -> str:
        """Flat, or not; nothing if it is not judged."""
        if self.bound is None:
            return ""
        return "flat" if self.rise < self.bound else "GROWS"


def _clean_up(pid: int) -> None:
    """A JVM takes memory until it thinks of cleaning up; what it needs shows afterwards."""
    if shutil.which("jcmd"):
        subprocess.run(["jcmd", str(pid), "GC.run"], capture_output=True, check=False)


def sample(run: Path, mark: str, at_s: float) -> Sample:
    """Look at everything once."""
    sizes = dict(_sizes(run))
    processes = marked(mark)
    memory = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    descriptors = {"driver": 0, "jvm": 0}
    for process in processes:
        if process.kind == "jvm":
            _clean_up(process.pid)
        if process.kind in descriptors:
            memory[process.kind] += process.anonymous_bytes / 1e6
            descriptors[process.kind] += process.descriptors
        else:
            memory["workers"] += process.pss_bytes / 1e6
    journal = sum(size for path, size in sizes.items() if path.name.startswith("journal"))
    status = json.loads(_penstock("status", str(run), "--json").stdout or "{}")
    operators = status.get("operators", {}).values()
    return Sample(
        at_s=round(at_s, 1),
        disk_mb=(sum(sizes.values()) - journal) / 1e6,
        files=len(sizes),
        driver_mb=memory["driver"],
        jvm_mb=memory["jvm"],
        workers_mb=memory["workers"],
        workers=sum(process.kind not in ("driver", "jvm") for process in processes),
        driver_descriptors=descriptors["driver"],
        jvm_descriptors=descriptors["jvm"],
        journal_mb=journal / 1e6,
        replicas=sum(operator.get("running") or 0 for operator in operators),
        queue=sum(operator.get("queue") or 0 for operator in operators),
    )


def _sizes(run: Path) -> Iterator[tuple[Path, int]]:
    """What each file takes on disk."""
    for folder, _, names in os.walk(run):
        for name in names:
            path = Path(folder) / name
            try:
                yield path, path.stat().st_blocks * 512
            except FileNotFoundError:  # retention was quicker
                continue


def courses_of(samples: Sequence[Sample]) -> list[Course]:
    """How each measure went; those that were seldom known are left out."""
    judged = samples[round(len(samples) * (1 - JUDGED)) :]
    points = {
        name: [(s.at_s, float(getattr(s, name))) for s in judged if getattr(s, name) is not None]
        for name in Sample.__slots__
        if name != "at_s"
    }
    return [course(name, known) for name, known in points.items() if len(known) >= 4]


def course(measure: str, judged: Sequence[tuple[float, float]]) -> Course:
    """Compare quarters, and fit a line through (second, value)."""
    quarter = max(1, len(judged) // 4)
    mean = fmean(value for _, value in judged)
    steepness = slope(judged) or 0.0
    rise = steepness * (judged[-1][0] - judged[0][0])
    return Course(
        measure=measure,
        first=fmean(value for _, value in judged[:quarter]),
        last=fmean(value for _, value in judged[-quarter:]),
        rise=rise / mean if mean else 0.0,
        bound=BOUNDS.get(measure),
    )


def soak(directory: Path, minutes: float) -> tuple[list[Sample], list[str]]:
    """Run for so long; return the samples, and what went wrong."""
    run, mark = directory / "run", f"{directory.name}-{os.getpid()}/"
    source = FileSource(directory / "in", RATE, wave=WAVE, wave_s=WAVE_S, every_s=FILE_EVERY_S)
    options = ["--set", f"source={source.directory}", "--policy", "ds2", "--interval", "10"]
    with (directory / "run.log").open("wb") as log:
        process = subprocess.Popen(
            [*PENSTOCK, "run", str(PIPELINE), *options, "--out", str(run), "--plain"],
            env={**os.environ, MARK: mark},
            stdout=log,
            stderr=log,
        )
    samples: list[Sample] = []
    wrong = []
    try:
        began = time.monotonic()
        while (passed_s := time.monotonic() - began) < minutes * 60 and process.poll() is None:
            if (run / "journal.jsonl").is_file():
                samples.append(sample(run, mark, passed_s))
            time.sleep(SAMPLE_S)
        wrong += _end(source, run, process)
    finally:
        source.stop()
        time.sleep(2)
        for left in marked(mark):
            wrong.append(f"left behind: {left.kind} {left.pid}")
            os.kill(left.pid, 9)
    return samples, wrong


def _end(source: FileSource, run: Path, process: "subprocess.Popen[bytes]") -> list[str]:
    """Let everything be processed, stop the run, and count."""
    rows, deadline = source.stop(), time.monotonic() + PATIENCE_S
    done = Topic.open(run / "topics" / "done")
    while done.refresh() < rows and time.monotonic() < deadline and process.poll() is None:
        time.sleep(1)
    stopped = _penstock("stop", str(run))
    wrong = [] if stopped.returncode == 0 else [f"stop: {stopped.stderr}"]
    process.wait(PATIENCE_S)
    if done.refresh() != rows:
        wrong.append(f"{rows} rows were written, {done.end} are done")
    result = json.loads((run / "result.json").read_text())
    if result["records"]["lost"]:
        wrong.append(f"lost: {result['records']}")
    restarts = sum("restarting" in line for line in _journal_events(run))
    return [*wrong, *([f"{restarts} restarts"] if restarts else [])]


def _journal_events(run: Path) -> Iterator[str]:
    for path in run.glob("journal*.jsonl"):
        for line in path.read_text().splitlines():
            yield from (event["kind"] for event in json.loads(line).get("events", ()))


def _penstock(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PENSTOCK, *words], capture_output=True, text=True, check=False)


def table(courses: Sequence[Course]) -> str:
    """Write the courses for people."""
    lines = [f"{'':<20}{'first quarter':>14}{'last quarter':>14}{'rise':>9}{'bound':>8}"]
    for one in courses:
        bound = f"{one.bound:.0%}" if one.bound is not None else "-"
        figures = f"{one.first:>14,.2f}{one.last:>14,.2f}{one.rise:>+9.1%}{bound:>8}"
        lines.append(f"{one.measure:<20}{figures}  {one.verdict}")
    return "\n".join(lines)


def _journal_growth(samples: Sequence[Sample]) -> str:
    grown = slope([(s.at_s, s.journal_mb) for s in samples]) or 0.0
    return f"the journal grows by {grown * 86400:.0f} MB a day until old parts are removed"


def main() -> int:
    """Soak as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    samples, wrong = soak(directory, args.minutes)
    courses = courses_of(samples)
    grows = [one.measure for one in courses if one.verdict == "GROWS"]
    verdict = "flat" if courses and not grows and not wrong else "NOT flat"
    if args.json:
        told = {"verdict": verdict, "wrong": wrong, "samples": [asdict(s) for s in samples]}
        print(json.dumps({**told, "courses": [asdict(one) for one in courses]}))
    else:
        print(table(courses), *wrong, sep="\n")
        print(f"{len(samples)} samples, {RATE:g} records/s on average, from files")
        print(_journal_growth(samples))
        print(verdict)
    if wrong:
        print(f"kept: {directory}", file=sys.stderr)
    else:
        shutil.rmtree(directory)
    return 0 if verdict == "flat" else 1


if __name__ == "__main__":
    sys.exit(main())
