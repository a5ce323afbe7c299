"""The backend that executes the runs of a grid on Spark.

A result is valid as long as its spec, the functions of its pipeline and its policy do not change.
Changes of the engine do not invalidate it, because runs on Spark take hours.
"""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar

from penstock.core.frozen_dict import FrozenDict, freeze
from penstock.errors import InputError
from penstock.lab.grid.backend import Result, fingerprint
from penstock.lab.grid.subprocess_run import run_in_subprocess
from penstock.pipelines.description import describe
from penstock.runs.spec import SparkSpec, default_policy
from penstock.runs.spec_fields import EARLIER_NAMES

_OWN = tuple(f.name for f in fields(SparkSpec) if f.name not in ("pipeline", "seed"))


def run_to_json(spec: SparkSpec, place: Path) -> Result:
    """Run in a child process, and return the result as grids store it."""
    return run_in_subprocess(spec, place).to_json()


@dataclass(frozen=True, slots=True)
class SparkBackend:
    """Executes specs on Spark; the function runs one spec in a new directory."""

    function: Callable[[SparkSpec, Path], Result] = run_to_json

    name: ClassVar[str] = "spark"
    fields: ClassVar[tuple[str, ...]] = ("query", "pipeline", *_OWN, *EARLIER_NAMES)
    aliases: ClassVar[Mapping[str, str]] = FrozenDict(pipeline="query", **EARLIER_NAMES)
    result_keys: ClassVar[tuple[str, ...]] = ("spec",)
    is_sequential: ClassVar[bool] = True

    def make(self, fields: Mapping[str, Any], seed: int) -> SparkSpec:
        """Make the spec of a run; the field `query` names its pipeline."""
        others = dict(freeze(fields))
        if "query" not in others:
            raise InputError("query", "missing", 'say which pipeline runs, such as query = "q1"')
        others.setdefault("policy", default_policy(others.get("controller")))
        return SparkSpec(pipeline=others.pop("query"), **others, seed=seed)

    def names(self, spec: SparkSpec) -> Mapping[str, str]:
        """Return the names of the pipeline, the workload and the policy of a run."""
        from penstock.runs.spark_preparation import WORKLOAD  # noqa: PLC0415  (a second, see `inputs`)

        workload = spec.workload or WORKLOAD
        return {"query": spec.pipeline, "workload": workload, "policy": spec.policy}

    def check(self, spec: SparkSpec) -> None:
        """Prepare the run, which calls its policy once."""
        from penstock.runs.spark_preparation import prepare_spark_run  # noqa: PLC0415

        prepare_spark_run(spec)

    def inputs(self, spec: SparkSpec) -> str:
        """Return a digest of the pipeline's and the policy's code, the load and all defaults."""
        # imported late: it takes a second, which simulated grids need not spend
        from penstock.runs.spark_preparation import prepare_spark_run  # noqa: PLC0415

        ready = prepare_spark_run(spec)
        operators, feeds = ready.pipeline.origin.operators.values(), ready.pipeline.feeds.values()
        functions = (*(op.function for op in operators), *(feed.make for feed in feeds))
        files = {file for function in functions for file in _source_files(function)}
        policy = (ready.policy.name, *map(dump_syntax, sorted(_source_files(ready.policy.decide))))
        return fingerprint(
            (describe(ready.pipeline), *map(dump_syntax, sorted(files)), policy),
            (ready.build_args, ready.load, ready.initial, ready.interval_s),
            (ready.params, ready.guards, ready.objective_s),
        )

    def run(self, spec: SparkSpec, place: Path | None) -> Result:
        """Run the spec in the directory; the files of the run stay there."""
        if place is None:
            raise ValueError("a run on Spark needs a directory")
        return self.function(spec, place)


def dump_syntax(file: Path) -> str:
    """Return the syntax tree of a Python file as text, without comments and layout."""
    return ast.dump(ast.parse(file.read_bytes()))


def _source_files(function: object) -> Iterator[Path]:
    """Yield the source files of a function, and of functions in its fields if it is an object."""
    function = inspect.unwrap(function) if callable(function) else function
    source = function if inspect.isroutine(function) else type(function)
    try:
        yield Path(inspect.getfile(source))
    except (TypeError, OSError):  # built in, or not from a file
        return
    if is_dataclass(function) and not isinstance(function, type):
        for item in fields(function):
            if callable(inner := getattr(function, item.name)):
                yield from _source_files(inner)
