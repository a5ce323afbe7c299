"""What is asked of a run on Spark, as it is written down beside its results."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from penstock.control.registry import DEFAULT_POLICY
from penstock.runs.run_directory import SPEC_FILE
from penstock.core.frozen_dict import FrozenDict, freeze, thaw
from penstock.errors import InputError
from penstock.workloads.pattern import SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSpec:
    """What is asked of one run. Times are those of the workload, before it is sped up."""

    pipeline: str
    #: None: the default one, if the pipeline has topics to fill.
    workload: str | None = None
    policy: str = DEFAULT_POLICY
    params: Mapping[str, Any] = field(default_factory=FrozenDict)
    guards: Mapping[str, Any] = field(default_factory=FrozenDict)
    workload_params: Mapping[str, Any] = field(default_factory=FrozenDict)
    speed_up: float = 1.0
    rate_scale: float = 1.0
    #: Length of the workload; None: as much of it as takes two minutes.
    minutes: float | None = None
    seed: int = SEED
    objective_s: float | None = None
    interval_s: float | None = None
    #: Arguments of the pipeline's function `build`.
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: Replicas at the start: a number for all operators, or by name.
    initial: Mapping[str, int] | int | None = None
    #: Decide, but change nothing.
    dry_run: bool = False
    #: Time that one batch shall take; this one is never sped up.
    batch_s: float = 1.0
    #: Where Spark runs, local-cluster[4,1,1024]; None: one process with room for all replicas.
    master: str | None = None
    #: The least and the most executors, 1:4; None: one up to all workers, if there are any.
    executors: str | None = None
    #: How much of the journal is kept at most; None: the default.
    journal_mb: float | None = None
    #: Minutes for which an operator that fails without the user's fault is started again; None:
    #: for ever, or for a few minutes if the pipeline produces its rows itself.
    retry_minutes: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries; what is not given is left out."""
        data = {key: thaw(value) for key, value in asdict(self).items()}
        return {key: value for key, value in data.items() if value not in (None, {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SparkSpec":
        """Read what `to_json` wrote."""
        known = [item.name for item in fields(cls)]
        for name in data:
            if name not in known:
                hint = "only runs that penstock run has begun can be resumed"
                raise InputError(name, "unknown field of a run on Spark", hint)
        return cls(**freeze(data))


def read_spec(directory: Path) -> SparkSpec:
    """Return what was asked of the run in a directory."""
    path = directory / SPEC_FILE
    try:
        asked = tomllib.loads(path.read_text(encoding="utf-8"))["spec"]
    except OSError:
        hint = "a run is a directory that penstock run has made"
        raise InputError("--resume", f"there is no {SPEC_FILE}", hint, str(directory)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as error:
        raise InputError("", f"cannot be read: {error}", where=str(path)) from None
    try:
        return SparkSpec.from_json(asked)
    except InputError as wrong:
        raise wrong.at(str(path)) from None
