"""Compares runs side by side: a table, a picture, and text."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.api.run_handle import Picture, Run
from penstock.errors import InputError
from penstock.reports.result_text import comparison
from penstock.reports.run_html import results_html
from penstock.runs.result import RunResult

if TYPE_CHECKING:
    import pyarrow as pa


class Comparison:
    """The figures of several runs, one column each."""

    def __init__(self, runs: Mapping[str, Run]) -> None:
        """Use `penstock.compare` to get one."""
        #: The runs by name.
        self.runs = dict(runs)
        self._results: dict[str, RunResult] = {name: run.result for name, run in runs.items()}

    @property
    def table(self) -> "pa.Table":
        """An Arrow table with one row per run."""
        from penstock.reports.arrow_tables import results_table  # noqa: PLC0415

        return results_table(self._results)

    def plot(self, target: str | Path | None = None) -> Picture:
        """Draw replicas and latency of all runs over time; `target` is an .svg, .png or .pdf."""
        from penstock.reports.run_picture import draw_comparison  # noqa: PLC0415

        journals = {name: run.journal for name, run in self.runs.items()}
        text = io.StringIO()
        if target is not None:
            draw_comparison(journals, Path(target))
        draw_comparison(journals, text)
        return Picture(text.getvalue())

    def __repr__(self) -> str:
        return "\n".join(comparison(self._results))

    def _repr_html_(self) -> str:
        return results_html(self._results)


def compare(runs: Iterable[Run] | Mapping[str, Run]) -> Comparison:
    """Compare finished runs; without names, each is called by its policy, or its directory.

    `NotReadyError` if one of them has not finished.

    >>> from penstock import compare, simulate
    >>> both = compare([simulate("q1", policy=name, minutes=5) for name in ("ds2", "hpa-cpu")])
    >>> both.table.select(["run", "workload"]).to_pylist()[1]
    {'run': 'hpa-cpu', 'workload': 'cosine'}
    """
    named = dict(runs) if isinstance(runs, Mapping) else _name_runs(list(runs))
    if not named:
        raise InputError("runs", "there is no run to compare")
    return Comparison(named)


def _name_runs(runs: list[Run]) -> dict[str, Run]:
    """Name runs by policy; if that is not unique, with workload; otherwise, by number."""
    by_policy = [str(run.spec.get("policy")) for run in runs]
    by_load = [f"{run.spec.get('policy')}, {run.spec.get('workload')}" for run in runs]
    numbered = [f"{name} ({number})" for number, name in enumerate(by_policy, start=1)]
    names = next((n for n in (by_policy, by_load) if len(set(n)) == len(runs)), numbered)
    return dict(zip(names, runs, strict=True))
