"""Many runs over the cores of this machine; each finished one is kept, so nothing is run twice."""

import inspect
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import chain, zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from penstock import control, core, engines
from penstock.errors import InputError, PenstockError
from penstock.lab.simulation import RunSpec, prepare, simulate

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Result = dict[str, Any]

#: Version of the files in `results/`.
VERSION = 1
RESULTS = "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far many runs have come."""

    total: int
    #: Found in the directory, not run again.
    kept: int
    #: Run by now, besides those.
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One run: what, how, and where its result is kept."""

    name: str
    spec: RunSpec
    run: Callable[[RunSpec], Result]
    file: Path | None


def run_all(
    specs: Mapping[str, Sequence[RunSpec]],
    out: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    run: Callable[[RunSpec], Result] = simulate,
) -> dict[str, list[Result]]:
    """Run every spec of every cell and return the results in the same order.

    With `out` each result is kept as `results/<cell>-<seed>.json` in that directory, and a run
    whose result is there is not run again unless its spec, its profile, pipeline, load or
    policy, or the simulator itself have changed since. `jobs` is the number of processes, by
    default one a core. `run` must be a function of a module, so that other processes find it.
    """
    tasks = list(_tasks(specs, out, run))
    results = {task.name: old for task in tasks if (old := _kept(task)) is not None}
    todo = [task for task in tasks if task.name not in results]
    tell, kept = progress or (lambda _: None), len(results)
    tell(Progress(total=len(tasks), kept=kept, done=0))
    for done, (index, result) in enumerate(in_parallel(_run, todo, jobs), 1):
        results[todo[index].name] = result
        tell(Progress(total=len(tasks), kept=kept, done=done))
    return {
        cell: [results[_run_name(cell, spec)] for spec in members]
        for cell, members in specs.items()
    }


def in_parallel(
    function: Callable[[Item], Answer], items: Sequence[Item], jobs: int | None = None
) -> Iterator[tuple[int, Answer]]:
    """Apply a module's function to each item in processes; yield as they finish, with its place.

    An interrupt from the keyboard ends all processes at once.
    """
    jobs = min(jobs or cores(), len(items))
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


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Kept(NamedTuple):
    """What a directory holds of the runs of some cells."""

    results: dict[str, list[Result]]
    missing: int
    #: Among the results: made with a profile, policy, load or simulator that changed since.
    outdated: int


def kept_results(specs: Mapping[str, Sequence[RunSpec]], out: Path) -> Kept:
    """Read the results that are there, outdated ones too."""
    kept: dict[str, list[Result]] = {cell: [] for cell in specs}
    missing = outdated = 0
    for cell, members in specs.items():
        for task in _tasks({cell: members}, out, simulate):
            stored = _stored(task)
            if stored is None:
                missing += 1
            else:
                kept[cell].append(dict(stored["result"]))
                outdated += stored["inputs"] != _inputs(task)
    return Kept(kept, missing, outdated)


def write_atomically(path: Path, data: Any) -> None:
    """Write JSON so that a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    half.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    half.replace(path)


def fingerprint(*parts: object) -> str:
    """Return a short digest of values that decide an outcome."""
    return sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:20]


def _tasks(
    specs: Mapping[str, Sequence[RunSpec]], out: Path | None, run: Callable[[RunSpec], Result]
) -> Iterator[_Task]:
    """First one run of every cell, then the second ones: the time left can be told early."""
    columns = ([(cell, spec) for spec in members] for cell, members in specs.items())
    seen = set()
    for cell, spec in filter(None, chain.from_iterable(zip_longest(*columns))):
        name = _run_name(cell, spec)
        if name in seen:
            raise InputError("seed", f"cell {cell!r} has seed {spec.seed} twice")
        seen.add(name)
        file = out / RESULTS / f"{name}.json" if out else None
        yield _Task(name=name, spec=spec, run=run, file=file)


def _run_name(cell: str, spec: RunSpec) -> str:
    return f"{cell}-{spec.seed}"


def _run(task: _Task) -> Result:
    """Run one task, here or in another process, and keep its result."""
    try:
        result = task.run(task.spec)
        if task.file is not None:
            head = {"version": VERSION, "spec": _spec_json(task), "inputs": _inputs(task)}
            write_atomically(task.file, {**head, "result": result})
    except PenstockError as error:  # as a text, which travels between processes
        raise PenstockError(f"run {task.name}: {error}") from None
    return result


def _kept(task: _Task) -> Result | None:
    """Return the result of an earlier run of the very same thing."""
    stored = _stored(task)
    return stored["result"] if stored and stored["inputs"] == _inputs(task) else None


def _stored(task: _Task) -> dict[str, Any] | None:
    """Return what is kept of a run with the same spec; half a file is as good as none."""
    if task.file is None or not task.file.is_file():
        return None
    try:
        stored: dict[str, Any] = json.loads(task.file.read_text(encoding="utf-8"))
        same = (stored["version"], stored["spec"]) == (VERSION, _spec_json(task))
        return stored if same and stored["inputs"] and stored["result"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _spec_json(task: _Task) -> Any:
    """The spec as it comes back from a file."""
    return json.loads(json.dumps(task.spec.to_json()))


def _inputs(task: _Task) -> str:
    """Digest of what the names in a spec stood for: files change while their names stay."""
    ready = prepare(task.spec)
    policy = ready.decider.policy
    source = inspect.unwrap(policy.decide)
    code = Path(inspect.getfile(source)).read_bytes() if inspect.isfunction(source) else b""
    return fingerprint(
        (_code_of_simulator(), task.run.__module__, task.run.__qualname__, policy.name, code),
        (ready.profile, ready.pipeline, ready.load, ready.schedule),
        (ready.decider.params, ready.guards, ready.objective_s),
    )


@cache
def _code_of_simulator() -> str:
    """Digest of the code that every run goes through, whatever its policy and load."""
    rooms = (
        *Path(engines.__path__[0]).rglob("*.py"),
        *Path(control.__path__[0]).glob("*.py"),
        *Path(core.__path__[0]).glob("*.py"),
    )
    return fingerprint(*(file.read_bytes() for file in sorted(rooms)))


def _end_quietly_when_interrupted() -> None:
    """Results appear as a whole or not at all, so a process may end anywhere."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
