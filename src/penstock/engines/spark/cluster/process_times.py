"""CPU time of this process and of everything that it has started, from /proc."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
#: In the command lines of Spark's processes that plan and commit batches.
_PLANNERS = ("python_streaming_source_runner", "python_streaming_sink_runner")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimes:
    """CPU seconds since each process began, with those of children that have ended."""

    own_s: float
    jvm_s: float
    #: Python workers, sources and committers of Spark.
    python_s: float
    #: Of these: sources and committers.
    planners_s: float

    @property
    def total_s(self) -> float:
        """The sum."""
        return self.own_s + self.jvm_s + self.python_s

    @property
    def overhead_s(self) -> float:
        """All but the processes that run tasks."""
        return self.own_s + self.jvm_s + self.planners_s

    def __sub__(self, other: "ProcessTimes") -> "ProcessTimes":
        return ProcessTimes(
            own_s=self.own_s - other.own_s,
            jvm_s=self.jvm_s - other.jvm_s,
            python_s=self.python_s - other.python_s,
            planners_s=self.planners_s - other.planners_s,
        )


def read_process_times() -> ProcessTimes:
    """Add up the CPU seconds of this process and its descendants."""
    stats = {stat.pid: stat for stat in _read_all()}
    own = os.getpid()
    tree = {own}
    # a child may have a smaller number than its parent, so look until nothing is added
    while new := {pid for pid, stat in stats.items() if stat.parent in tree} - tree:
        tree |= new
    if own not in stats:  # no /proc
        return ProcessTimes(own_s=0.0, jvm_s=0.0, python_s=0.0, planners_s=0.0)
    jvms = {pid for pid in tree if stats[pid].name == "java"}
    pythons = tree - jvms - {own}
    return ProcessTimes(
        own_s=stats[own].seconds,
        jvm_s=sum(stats[pid].seconds for pid in jvms),
        python_s=sum(stats[pid].seconds for pid in pythons),
        planners_s=sum(stats[pid].seconds for pid in pythons if _is_planner(pid)),
    )


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    parent: int
    name: str
    seconds: float


def _is_planner(pid: int) -> bool:
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
    except OSError:  # it has ended
        return False
    return any(name in command for name in _PLANNERS)


def _read_all() -> Iterator[_Stat]:
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        # the name is in parentheses and may contain anything
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        ticks = sum(int(field) for field in fields[11:15])
        yield _Stat(int(path.parent.name), int(fields[1]), name, ticks / _TICKS_PER_S)
