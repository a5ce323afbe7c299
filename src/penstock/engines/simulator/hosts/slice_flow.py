"""The flow of records through slices: queues, processor time and delays, step by step.

A host gives its processor to the slices on it in proportion to the work that waits for each. A
record is complete at an operator whose slices all get every record when the slowest of them has
processed it. A slice that moves processes nothing until it has arrived.
"""

from dataclasses import dataclass, field

import numpy as np

from penstock.engines.simulator.hosts.slice_table import FloatArray, IntArray, SliceTable

#: Short compared to a move and to the delay of a record.
STEP_S = 0.05


@dataclass(slots=True)
class SliceFlow:
    """Queues and counters of all slices; `advance` changes them by one step."""

    table: SliceTable
    #: Records that wait in each slice, and those that it has processed.
    queue: FloatArray = field(init=False)
    processed: FloatArray = field(init=False)
    #: Seconds of a host that each slice has used.
    used_s: FloatArray = field(init=False)
    #: Seconds until a moving slice has arrived; 0 for all others.
    moving_s: FloatArray = field(init=False)
    #: Records that have passed each operator.
    passed: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.table.names)
        self.queue, self.processed, self.used_s, self.moving_s = np.zeros((4, size))
        self.passed = np.zeros(len(self.table.stages))

    def advance(self, arrived: float, home: IntArray, hosts: int) -> None:
        """Let one step pass; `home` has the number of each slice's host."""
        table = self.table
        self.queue[table.stages[0]] += arrived * table.share[table.stages[0]]
        done = self.queue * self._speed(home, hosts)
        self.queue -= done
        self.processed += done
        self.used_s += done * table.cost_s
        self.moving_s = np.maximum(0.0, self.moving_s - STEP_S)
        self._pass_on()

    def _speed(self, home: IntArray, hosts: int) -> FloatArray:
        """Return the part of its queue that each slice processes in a step."""
        work_s = self._waiting_work_s(home, hosts)
        of_host = np.minimum(1.0, STEP_S / np.maximum(work_s, 1e-12))
        return np.where(self.moving_s > 0, 0.0, of_host[home])

    def _waiting_work_s(self, home: IntArray, hosts: int) -> FloatArray:
        """Return the work that waits on each host, in seconds of the host."""
        here = np.where(self.moving_s > 0, 0.0, self.queue * self.table.cost_s)
        return np.bincount(home, weights=here, minlength=hosts).astype(np.float64)

    def _pass_on(self) -> None:
        """Send what is complete at each operator to the next one."""
        for number, rows in enumerate(self.table.stages):
            gets_all = self.table.share[rows.start] == 1
            processed = self.processed[rows]
            complete = float(processed.min() if gets_all else processed.sum())
            sent, self.passed[number] = complete - self.passed[number], complete
            if number + 1 < len(self.table.stages):
                after = self.table.stages[number + 1]
                self.queue[after] += sent * self.table.share[after]

    def wait_s(self, home: IntArray, hosts: int) -> FloatArray:
        """Return how long a record that arrives now takes in each slice, waiting included."""
        work_s = self._waiting_work_s(home, hosts)
        own_s = self.queue * self.table.cost_s
        moving = self.moving_s > 0
        return self.moving_s + work_s[home] + np.where(moving, own_s, 0.0) + self.table.cost_s
