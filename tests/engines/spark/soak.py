"""Run a pipeline for a while under load while replicas change: nothing may grow.

    python -m tests.engines.spark.soak --minutes 10

Prints the first and the last quarter after a warm-up, and by how much a line through the last
70 % of the samples rises. Each measure has a bound; below all of them the run is flat.
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

from tests.engines.spark.child import Child
from tests.engines.spark.processes import marked

from penstock.engines.spark.monitor import slope

SAMPLE_S = 10.0
CHANGE_S = 5.0
RATE = 300.0
#: The share of the run that is judged; before it workers start and logs fill up.
JUDGED = 0.7
#: A rise over the judged part of less than this share of the mean is flat. Latency is shown
#: only: the machine may have more to do.
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
    """What a run uses at one moment; memory is resident, shared pages divided."""

    at_s: float
    disk_mb: float
    files: int
    driver_mb: float
    jvm_mb: float
    workers_mb: float
    workers: int
    driver_descriptors: int
    jvm_descriptors: int
    p50_s: float | None
    p95_s: float | None


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


def sample(run: Path, child: Child, mark: str, at_s: float) -> Sample:
    """Look at everything once."""
    sizes = list(_sizes(run))
    processes = marked(mark)
    memory = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    descriptors = {"driver": 0, "jvm": 0}
    for process in processes:
        if process.kind == "jvm":
            _clean_up(process.pid)
        who = process.kind if process.kind in descriptors else "workers"
        memory[who] += process.pss_bytes / 1e6
        if who in descriptors:
            descriptors[who] += process.descriptors
    told = child.all_told("going")
    return Sample(
        at_s=round(at_s, 1),
        disk_mb=sum(sizes) / 1e6,
        files=len(sizes),
        driver_mb=memory["driver"],
        jvm_mb=memory["jvm"],
        workers_mb=memory["workers"],
        workers=sum(process.kind not in ("driver", "jvm") for process in processes),
        driver_descriptors=descriptors["driver"],
        jvm_descriptors=descriptors["jvm"],
        p50_s=told[-1]["p50_s"] if told else None,
        p95_s=told[-1]["p95_s"] if told else None,
    )


def _sizes(run: Path) -> Iterator[int]:
    """What each file takes on disk."""
    for folder, _, names in os.walk(run):
        for name in names:
            try:
                yield (Path(folder) / name).stat().st_blocks * 512
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


def soak(directory: Path, minutes: float, seed: int) -> tuple[list[Sample], list[str]]:
    """Run for so long; return the samples, and what went wrong."""
    run, mark = directory / "run", f"{directory.name}-{os.getpid()}/"
    run.mkdir()
    wishes = ["--pipeline", "soak", "--rate", str(RATE), "--change-s", str(CHANGE_S)]
    child = Child(run, mark, *wishes, "--tell-s", str(SAMPLE_S), "--seed", str(seed))
    samples: list[Sample] = []
    wrong = []
    try:
        if not child.wait_for("running", PATIENCE_S):
            return samples, [f"it never ran; see {run}"]
        began = time.monotonic()
        while (passed_s := time.monotonic() - began) < minutes * 60 and child.code is None:
            samples.append(sample(run, child, mark, passed_s))
            time.sleep(max(0.0, began + len(samples) * SAMPLE_S - time.monotonic()))
        (run / "finish").touch()
        if child.wait(PATIENCE_S) != 0:
            wrong.append(f"the driver ended with {child.code}; see {run}")
        wrong += [str(message) for message in child.all_told("revived")]
    finally:
        time.sleep(2)
        for process in marked(mark):
            wrong.append(f"left behind: {process.kind} {process.pid}")
            os.kill(process.pid, 9)
    return samples, wrong


def table(courses: Sequence[Course]) -> str:
    """Write the courses for people."""
    lines = [f"{'':<20}{'first quarter':>14}{'last quarter':>14}{'rise':>9}{'bound':>8}"]
    for one in courses:
        bound = f"{one.bound:.0%}" if one.bound is not None else "-"
        figures = f"{one.first:>14,.2f}{one.last:>14,.2f}{one.rise:>+9.1%}{bound:>8}"
        lines.append(f"{one.measure:<20}{figures}  {one.verdict}")
    return "\n".join(lines)


def main() -> int:
    """Soak as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    samples, wrong = soak(directory, args.minutes, args.seed)
    courses = courses_of(samples)
    grows = [one.measure for one in courses if one.verdict == "GROWS"]
    verdict = "flat" if courses and not grows and not wrong else "NOT flat"
    if args.json:
        told = {"verdict": verdict, "wrong": wrong, "samples": [asdict(s) for s in samples]}
        print(json.dumps({**told, "courses": [asdict(one) for one in courses]}))
    else:
        print(table(courses), *wrong, sep="\n")
        print(f"{len(samples)} samples, {RATE:g} records/s, replicas change every {CHANGE_S:g} s")
        print(verdict)
    if wrong:
        print(f"kept: {directory}", file=sys.stderr)
    else:
        shutil.rmtree(directory)
    return 0 if verdict == "flat" else 1


if __name__ == "__main__":
    sys.exit(main())
