"""What a run directory says about the engine: operators, slices on replicas, hosts."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.engines.microbatch.host_table import HostTable
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout, read_json
from penstock.errors import PenstockError
from penstock.runs.run_directory import JOURNAL
from penstock.runs.run_status import read_status

#: How long an answer is used again; reading a long journal takes time.
CACHE_S = 1.0
#: The last tick is in so many bytes at the end of the journal.
_TAIL_BYTES = 1 << 18


class RunDirectoryStatus:
    """Describes the run in a directory; reads files only, and never raises."""

    def __init__(self, run: Path, get_problem: Callable[[], str] = str) -> None:
        self._run, self._get_problem = run, get_problem
        self._answer: dict[str, Any] = {}
        self._read_s = -CACHE_S

    def __call__(self) -> dict[str, Any]:
        """Return the description, at most a second old."""
        if time.monotonic() > self._read_s + CACHE_S:
            try:
                self._answer = describe_run(self._run)
            except (PenstockError, OSError, ValueError, KeyError) as error:
                state = f"starting: {error}" if not self._run.is_dir() else "starting"
                self._answer = {"kind": "spark", "state": state, "hosts": [], "operators": []}
            self._read_s = time.monotonic()
        problem = self._get_problem()
        return {**self._answer, "state": problem} if problem else self._answer


def describe_run(run: Path) -> dict[str, Any]:
    """Return the state of a run, its operators and the slices on its hosts or replicas."""
    status = read_status(run)
    placed = {operator.name: _read_slices(run, operator.name) for operator in status.operators}
    state = "; ".join([status.state, *status.problems])
    return {
        "kind": "spark",
        "state": state,
        "host_share": status.host_share,
        "hosts": describe_hosts(status.hosts, read_slice_loads(run)),
        "operators": [
            {
                "name": operator.name,
                "replicas": operator.running or operator.requested,
                "wanted": operator.wanted,
                "slices": sum(map(len, placed[operator.name])),
                "slices_by_replica": placed[operator.name],
                "waiting": operator.queue,
                "oldest_waiting_s": operator.oldest_waiting_s,
            }
            for operator in status.operators
        ],
    }


def _read_slices(run: Path, operator: str) -> list[list[int]]:
    """Return the slices of each replica in the last batch of an operator."""
    directory = RunLayout(run).batches(operator)
    record = BatchLog(directory).last() if directory.is_dir() else None
    return [list(task.slices) for task in record.tasks] if record is not None else []


def describe_hosts(
    placed: Mapping[str, Sequence[str]], loads: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return hosts with their slices, such as `match/3`, by operator, and their load.

    >>> describe_hosts({"h1": ["match/3", "exit/0", "match/1"]}, {"match/3": 0.4})
    [{'name': 'h1', 'cpu': 0.4, 'slices': {'match': [1, 3], 'exit': [0]}}]
    """
    hosts = []
    for name, pieces in placed.items():
        slices: dict[str, list[int]] = {}
        for piece in pieces:
            operator, _, number = piece.rpartition("/")
            slices.setdefault(operator, []).append(int(number))
        by_operator = {operator: sorted(numbers) for operator, numbers in slices.items()}
        cpu = sum(loads.get(piece, 0.0) for piece in pieces)
        hosts.append({"name": name, "cpu": cpu, "slices": by_operator})
    return hosts


def read_host_loads(run: Path) -> dict[str, float]:
    """Return the load of each host that runs now; a new host has none before the next tick."""
    data = read_json(RunLayout(run).hosts)
    if not data:
        return {}
    table, loads = HostTable.from_json(data), read_slice_loads(run)
    return {
        host: sum(loads.get(piece, 0.0) for piece in table.slices_of(host)) for host in table.hosts
    }


def read_slice_loads(run: Path) -> dict[str, float]:
    """Return the share of its host that each slice used, from the last tick that has it."""
    path = run / JOURNAL
    if not path.is_file():
        return {}
    with path.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - _TAIL_BYTES))
        lines = stream.read().split(b"\n")
    for line in reversed(lines[:-1]):
        if b'"hosts"' in line:
            try:
                hosts = json.loads(line)["snapshot"]["hosts"].values()
                slices = [(piece, m) for host in hosts for piece, m in host["slices"].items()]
                return {piece: float(measures["cpu"]) for piece, measures in slices}
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
    return {}
