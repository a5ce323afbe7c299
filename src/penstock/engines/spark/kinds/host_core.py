"""The core of a host on which slices take turns: a share of a real core, emulated by waiting.

On one machine, hosts are names. A host with a share of 0.25 has a quarter of a core: after c
processor seconds it waits for 3 c more, which count as computation, and its slices run one after
the other, whichever operator they belong to. Where the machine is busy and lets a process wait for
a real core, that is part of the wait: a host is as fast as it is declared, if the machine can do
it. What a task does besides calls for slices, such as reading rows and writing state, is not slowed
down.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.cpu_clock import emulate_work, processor_s


@dataclass(slots=True)
class CoreUsage:
    """The processor seconds of a slice, in seconds of its host."""

    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCore:
    """The core of one host, or of the machine if there are no hosts."""

    #: The file that is locked while a slice uses the core; None without hosts.
    lock: Path | None = None
    share: float = 1.0

    @classmethod
    def of(cls, layout: RunLayout, host: str, share: float) -> "HostCore":
        """Return the core of a host; an empty name means no host."""
        return cls(lock=layout.host_core(host), share=share) if host else cls()

    @contextmanager
    def occupy(self) -> Iterator[CoreUsage]:
        """Use the core for a `with` block, and then wait as a slower core would."""
        usage = CoreUsage()
        with self._turn():
            begun_s, start_s = processor_s(), time.perf_counter()
            yield usage
            if self.share < 1:
                used_s = processor_s() - begun_s
                waited_s = time.perf_counter() - start_s - used_s
                emulate_work(used_s * (1 / self.share - 1), waited_s)
            usage.cpu_s = processor_s() - begun_s

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other slice uses the core; the lock ends with the process, too."""
        if self.lock is None:
            yield
            return
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
