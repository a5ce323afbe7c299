"""Where Spark runs, as people write it: one process, or a small cluster on this machine."""

import re
from dataclasses import dataclass

from penstock.errors import InputError

#: Megabytes that Spark needs for an executor at least, whatever runs in it.
MIN_MB = 512
_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
_LOCAL = re.compile(r"local\[\s*(\d+)\s*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """A place for replicas: so many workers, with one executor each."""

    #: None: everything is in one process, and there are no executors.
    workers: int | None = None
    #: Tasks that run at once, in each executor or in all.
    cores: int
    memory_mb: int = 0

    @property
    def url(self) -> str:
        """What Spark calls it. A task is tried three times everywhere."""
        if self.workers is None:
            return f"local[{self.cores},3]"
        return f"local-cluster[{self.workers},{self.cores},{self.memory_mb}]"


def parse_master(text: str) -> Master:
    """Read what people write.

    >>> parse_master("local-cluster[4,1,1024]").workers
    4
    """
    if found := _LOCAL.fullmatch(text.strip()):
        master = Master(cores=int(found[1]))
    elif found := _CLUSTER.fullmatch(text.strip()):
        workers, cores, memory_mb = map(int, found.groups())
        master = Master(workers=workers, cores=cores, memory_mb=memory_mb)
    else:
        hint = "local[8], or local-cluster[4,1,1024]: workers, cores and megabytes of each"
        raise InputError("--master", f"cannot be read: {text!r}", hint)
    if not master.cores or master.workers == 0:
        raise InputError("--master", f"needs at least one worker and one core, got {text!r}")
    if master.workers is not None and master.memory_mb < MIN_MB:
        problem = f"{master.memory_mb} MB are too few for an executor"
        raise InputError("--master", problem, f"at least {MIN_MB}")
    return master


def parse_executors(text: str | None, master: Master | None) -> tuple[int, int] | None:
    """Read the least and the most executors; None where the level is absent.

    >>> parse_executors("1:3", parse_master("local-cluster[4,1,1024]"))
    (1, 3)
    """
    if master is None or master.workers is None:
        if text is None:
            return None
        problem = "there are no executors in local mode: all replicas share one process"
        raise InputError("--executors", problem, "add --master 'local-cluster[4,1,1024]'")
    found = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", text or f"1:{master.workers}")
    if found is None:
        raise InputError("--executors", f"cannot be read: {text!r}", "LOW:HIGH, such as 1:4")
    low, high = int(found[1]), int(found[2])
    if low < 1 or low > high:
        raise InputError("--executors", f"needs 1 <= LOW <= HIGH, got {low}:{high}")
    if high > master.workers:
        problem = f"{high} are more than the {master.workers} workers of {master.url}"
        raise InputError("--executors", problem, "a worker has room for one")
    return low, high
