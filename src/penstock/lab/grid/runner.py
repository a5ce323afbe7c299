"""Many runs over the cores of this machine; each finished one is kept, so nothing is run twice."""

import json
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.core.progress import WorkProgress
from penstock.errors import InputError, PenstockError
from penstock.lab.grid.backend import AnySpec, Result, RunBackend, S

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_LOG = logging.getLogger(__name__)
#: Version of the files in `results/`.
VERSION = 1
RESULTS = "results"
#: Where runs are that leave more than a result, each in a directory of its own.
RUNS = "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task(Generic[S]):
    """One run: what, how, and where it is kept."""

    name: str
    spec: S
    backend: RunBackend[S]
    out: Path | None

    @property
    def file(self) -> Path | None:
        """Where its result is."""
        return self.out / RESULTS / f"{self.name}.json" if self.out else None

    @property
    def place(self) -> Path | None:
        """Where it leaves the rest."""
        return self.out / RUNS / self.name if self.out else None


def run_all(
    specs: Mapping[str, Sequence[S]],
    backend: RunBackend[S],
    out: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[WorkProgress], None] | None = None,
    failed: Callable[[PenstockError], None] | None = None,
) -> dict[str, list[Result]]:
    """Run every spec of every cell and return the results in the same order.

    With `out` each result is kept as `results/<cell>-<seed>.json` in that directory, and a run
    whose result is there is not run again unless its spec, or the inputs that its backend names,
    changed since. `jobs` is the number of processes, by default one a core. A run that fails ends
    them all; with `failed`, that function gets the error and the other runs continue.
    """
    tasks = list(_list_tasks(specs, backend, out))
    results = {task.name: old for task in tasks if (old := _read_current(task)) is not None}
    todo = [task for task in tasks if task.name not in results]
    tell, kept = progress or (lambda _: None), len(results)
    _LOG.info("grid of %d runs starts, %d have results", len(tasks), kept)
    tell(WorkProgress(total=len(tasks), kept=kept, done=0))
    for done, (index, result) in enumerate(map_in_parallel(_run_task, todo, jobs), 1):
        _LOG.debug("run %s ended, %d of %d", todo[index].name, done, len(todo))
        if not isinstance(result, PenstockError):
            results[todo[index].name] = result
        elif failed is not None:
            failed(result)
        else:
            raise result
        tell(WorkProgress(total=len(tasks), kept=kept, done=done))
    return {
        cell: [results[name] for spec in members if (name := _run_name(cell, spec)) in results]
        for cell, members in specs.items()
    }


def map_in_parallel(
    function: Callable[[Item], Answer], items: Sequence[Item], jobs: int | None = None
) -> Iterator[tuple[int, Answer]]:
    """Apply a module's function to each item in processes; yield as they finish, with its place.

    An interrupt from the keyboard ends all processes at once.
    """
    jobs = min(jobs or count_cores(), len(items))
    if jobs <= 1:
        for index, item in enumerate(items):
            yield index, function(item)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _end_quietly_when_interrupted)
    try:
        places = {pool.submit(function, item): index for index, item in enumerate(items)}
        for future in as_completed(places):
            yield places[future], future.result()
    except BrokenProcessPool:
        problem = "a process was ended from outside, perhaps for want of memory"
        raise PenstockError(f"{problem}; the same command goes on with what is left") from None
    finally:
        pool.shutdown(cancel_futures=True)


def count_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class KeptResults(NamedTuple):
    """What a directory holds of the runs of some cells."""

    results: dict[str, list[Result]]
    missing: int
    #: Among the results: made with a policy, a load or something else that changed since.
    outdated: int


def read_kept_results(
    specs: Mapping[str, Sequence[S]], backend: RunBackend[S], out: Path
) -> KeptResults:
    """Read the results that are there, outdated ones too."""
    kept: dict[str, list[Result]] = {cell: [] for cell in specs}
    missing = outdated = 0
    for cell, members in specs.items():
        for task in _list_tasks({cell: members}, backend, out):
            stored = _read_stored(task)
            if stored is None:
                missing += 1
            else:
                kept[cell].append(dict(stored["result"]))
                outdated += stored["inputs"] != backend.inputs(task.spec)
    return KeptResults(kept, missing, outdated)


def write_json(path: Path, data: Any) -> None:
    """Write JSON so that a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    half.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    half.replace(path)


def _list_tasks(
    specs: Mapping[str, Sequence[S]], backend: RunBackend[S], out: Path | None
) -> Iterator[_Task[S]]:
    """First one run of every cell, then the second ones: the time left can be told early."""
    columns = ([(cell, spec) for spec in members] for cell, members in specs.items())
    seen = set()
    for cell, spec in filter(None, chain.from_iterable(zip_longest(*columns))):
        name = _run_name(cell, spec)
        if name in seen:
            raise InputError("seed", f"cell {cell!r} has seed {spec.seed} twice")
        seen.add(name)
        yield _Task(name=name, spec=spec, backend=backend, out=out)


def _run_name(cell: str, spec: AnySpec) -> str:
    return f"{cell}-{spec.seed}"


def _run_task(task: _Task[S]) -> Result | PenstockError:
    """Run one task, here or in another process, and keep its result."""
    try:
        inputs = task.backend.inputs(task.spec)  # as they are when it begins
        result = task.backend.run(task.spec, task.place)
        if task.file is not None:
            head = {"version": VERSION, "spec": _spec_json(task), "inputs": inputs}
            write_json(task.file, {**head, "result": result})
    except PenstockError as error:  # as a text, which travels between processes
        return PenstockError(f"run {task.name}: {error}")
    return result


def _read_current(task: _Task[S]) -> Result | None:
    """Return the result of an earlier run of the very same thing."""
    stored = _read_stored(task)
    return (
        stored["result"] if stored and stored["inputs"] == task.backend.inputs(task.spec) else None
    )


def _read_stored(task: _Task[S]) -> dict[str, Any] | None:
    """Return what is kept of a run with the same spec; half a file is as good as none."""
    if task.file is None or not task.file.is_file():
        return None
    try:
        stored: dict[str, Any] = json.loads(task.file.read_text(encoding="utf-8"))
        same = (stored["version"], stored["spec"]) == (VERSION, _spec_json(task))
        whole = isinstance(stored["result"], dict) and stored["inputs"]
        return stored if same and whole and stored["result"] else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _spec_json(task: _Task[S]) -> Any:
    """The spec as it comes back from a file."""
    return json.loads(json.dumps(task.spec.to_json()))


def _end_quietly_when_interrupted() -> None:
    """Results appear as a whole or not at all, so a process may end anywhere."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
