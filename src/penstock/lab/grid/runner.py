"""Executes many runs on the cores of this machine and stores each result for later."""

import json
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from penstock.core.progress import WorkProgress
from penstock.errors import InputError, PenstockError
from penstock.files.text import explain_os_error
from penstock.lab.grid.backend import AnySpec, Result, RunBackend, S
from penstock.runs.spec_fields import with_current_names

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_LOG = logging.getLogger(__name__)
#: Version of the files in `results/`.
VERSION = 1
RESULTS = "results"
#: A copy of the grid, in its results directory.
GRID_FILE = "grid.toml"
#: Folder with one directory per run, for runs with more files than a result.
RUNS = "runs"


class TaskMap(Protocol):
    """Applies a module-level function to items somewhere, and yields (index, result) when ready."""

    def __call__(
        self, function: Callable[[Any], Any], items: Sequence[Any], /
    ) -> Iterator[tuple[int, Any]]:
        """Begin; the order of the results is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task(Generic[S]):
    """One run with its backend and its files."""

    name: str
    spec: S
    backend: RunBackend[S]
    out: Path | None

    @property
    def file(self) -> Path | None:
        """The file of its result."""
        return self.out / RESULTS / f"{self.name}.json" if self.out else None

    @property
    def place(self) -> Path | None:
        """The directory for its other files."""
        return self.out / RUNS / self.name if self.out else None


def run_all(
    specs: Mapping[str, Sequence[S]],
    backend: RunBackend[S],
    out: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[WorkProgress], None] | None = None,
    failed: Callable[[PenstockError], None] | None = None,
    apply: TaskMap | None = None,
) -> dict[str, list[Result]]:
    """Run every spec of every cell and return the results in the same order.

    With `out`, each result is stored as `results/<cell>-<seed>.json` in that directory. A run with
    a stored result is executed again only if its spec, or the inputs that its backend names, have
    changed. `jobs` is the number of processes, by default one per core; `apply` executes them
    elsewhere. A failed run ends all others; with `failed`, that function gets the error and the
    other runs continue.
    """
    tasks = list(_list_tasks(specs, backend, out))
    results = {task.name: old for task in tasks if (old := _read_current(task)) is not None}
    todo = [task for task in tasks if task.name not in results]
    report, kept = progress or (lambda _: None), len(results)
    _LOG.info("grid of %d runs starts, %d have results", len(tasks), kept)
    report(WorkProgress(total=len(tasks), kept=kept, done=0))
    apply = apply or partial(map_in_parallel, jobs=jobs)
    for done, (index, result) in enumerate(apply(_run_task, todo), 1):
        _LOG.debug("run %s ended, %d of %d", todo[index].name, done, len(todo))
        if not isinstance(result, PenstockError):
            _store(todo[index], result)
            results[todo[index].name] = result.result
        elif failed is not None:
            failed(result)
        else:
            raise result
        report(WorkProgress(total=len(tasks), kept=kept, done=done))
    return {
        cell: [results[name] for spec in members if (name := _run_name(cell, spec)) in results]
        for cell, members in specs.items()
    }


def map_in_parallel(
    function: Callable[[Item], Answer], items: Sequence[Item], jobs: int | None = None
) -> Iterator[tuple[int, Answer]]:
    """Apply a module-level function to each item in processes; yield (index, result) when ready.

    Ctrl-C ends all processes at once.
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
        problem = "a worker process was killed, perhaps because memory ran out"
        raise PenstockError(f"{problem}; the same command resumes") from None
    finally:
        pool.shutdown(cancel_futures=True)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class KeptResults(NamedTuple):
    """The stored results of some cells, and how many runs have none."""

    results: dict[str, list[Result]]
    missing: int
    #: Number of results whose policy, load or other inputs have changed since.
    outdated: int


def read_kept_results(
    specs: Mapping[str, Sequence[S]], backend: RunBackend[S], out: Path
) -> KeptResults:
    """Read the stored results, including outdated ones."""
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


def make_directory(out: Path, option: str = "--out") -> None:
    """Make a results directory."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(option, f"cannot be created: {explain_os_error(error)}") from None


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically: a reader sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def _list_tasks(
    specs: Mapping[str, Sequence[S]], backend: RunBackend[S], out: Path | None
) -> Iterator[_Task[S]]:
    """Yield the first run of every cell, then the second ones: this helps to estimate the time."""
    columns = ([(cell, spec) for spec in members] for cell, members in specs.items())
    names = set()
    for cell, spec in filter(None, chain.from_iterable(zip_longest(*columns))):
        name = _run_name(cell, spec)
        if name in names:
            raise InputError("seed", f"cell {cell!r} has seed {spec.seed} twice")
        names.add(name)
        yield _Task(name=name, spec=spec, backend=backend, out=out)


def _run_name(cell: str, spec: AnySpec) -> str:
    return f"{cell}-{spec.seed}"


class _Done(NamedTuple):
    """What a task computed, and the digest of its inputs when it began."""

    inputs: str
    result: Result


def _run_task(task: _Task[S]) -> _Done | PenstockError:
    """Execute one task in the current process."""
    try:
        inputs = task.backend.inputs(task.spec)  # before the run, which may take hours
        return _Done(inputs, task.backend.run(task.spec, task.place))
    except PenstockError as error:  # only its text can be pickled for sure
        return PenstockError(f"run {task.name}: {error}")


def _store(task: _Task[S], done: _Done) -> None:
    """Write the result of a task, if results are kept."""
    if task.file is not None:
        head = {"version": VERSION, "spec": _spec_json(task), "inputs": done.inputs}
        write_json(task.file, {**head, "result": done.result})


def _read_current(task: _Task[S]) -> Result | None:
    """Return the stored result of a task if its inputs have not changed."""
    stored = _read_stored(task)
    return (
        stored["result"] if stored and stored["inputs"] == task.backend.inputs(task.spec) else None
    )


def _read_stored(task: _Task[S]) -> dict[str, Any] | None:
    """Return the stored file of a task with the same spec; None if it is missing or damaged."""
    if task.file is None or not task.file.is_file():
        return None
    try:
        stored: dict[str, Any] = json.loads(task.file.read_text(encoding="utf-8"))
        same = (stored["version"], with_current_names(stored["spec"])) == (
            VERSION,
            _spec_json(task),
        )
        result: dict[str, Any] = dict(stored["result"])
        is_whole = result and result.keys() >= set(task.backend.result_keys)
        return stored if same and is_whole and stored["inputs"] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _spec_json(task: _Task[S]) -> Any:
    """Return the spec as JSON reads it back, with lists in place of tuples."""
    return json.loads(json.dumps(task.spec.to_json()))


def _end_quietly_when_interrupted() -> None:
    """End on Ctrl-C without a traceback; results are written atomically, so this is safe."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
