"""What the dashboard says about runs: every function turns a query into plain data for JSON."""

from collections.abc import Mapping
from typing import Any

from penstock import __version__
from penstock.control.loop import Tick
from penstock.control.registry import policies
from penstock.core.frozen_dict import thaw
from penstock.dashboard.curves import make_curves
from penstock.dashboard.decision_list import KINDS, list_decisions, tell_decision
from penstock.dashboard.graph import draw_graph
from penstock.dashboard.health import HealthReader
from penstock.dashboard.host_view import view_hosts
from penstock.dashboard.instance_view import view_instances
from penstock.dashboard.policy_lines import replay_policy
from penstock.dashboard.run_library import RunLibrary
from penstock.dashboard.run_reader import RunReader, read_state
from penstock.errors import InputError
from penstock.reports.run_summary import (
    compare_scores,
    figure_text,
    remark_comparison,
    scores_of,
    summarize,
    title_of,
)
from penstock.runs.journal_index import read_tick
from penstock.runs.run_directory import SPEC_FILE, read_spec_file

#: Runs side by side.
MAX_COMPARED = 4
#: A run that has not finished is scored from its ticks, if they are not too many.
MAX_SCORED_TICKS = 20_000
#: A request reads on for so long at most. A long journal is read by the stream of live updates:
#: requests that read on too would keep the slider waiting.
READ_S = 0.02
#: Ticks that are read backwards to find measures for a tick without any.
_MAX_BACK = 60


class RunViews:
    """Answers queries about the runs of a library."""

    def __init__(self, library: RunLibrary) -> None:
        self.library = library
        self._health = HealthReader()

    def reader(self, query: Mapping[str, str]) -> RunReader:
        """Return the run that a query names."""
        return self.library.reader(query.get("run", ""))

    def runs(self, _query: Mapping[str, str]) -> Any:
        """List the runs."""
        listed = []
        for name in self.library.names():
            try:
                directory = self.library.locate(name)
                spec, _ = read_spec_file(directory / SPEC_FILE)
                title, state = title_of(spec), read_state(directory)
            except InputError as error:
                title, state = str(error), "damaged"
            listed.append({"name": name, "title": title, "state": state})
        return {"runs": listed, "version": __version__, "policies": [*policies()]}

    def overview(self, query: Mapping[str, str]) -> Any:
        """Return what a run is: its spec, its operators, its length."""
        reader = self.reader(query)
        reader.update(READ_S)
        with reader.open():
            columns, header = reader.columns_now(), reader.index.header
            return {
                "name": query["run"],
                "title": title_of(reader.spec),
                "pipeline": str(reader.spec.get("pipeline", reader.spec.get("query", ""))),
                "policy": str(header.get("policy", "")),
                "spec": thaw(reader.spec),
                "versions": dict(reader.versions),
                "objective_s": header.get("objective_s"),
                "interval_s": header.get("interval_s"),
                "operators": columns.operators,
                "is_live": reader.is_live,
                "is_controlled": reader.spec.get("controller") != "none",
                "is_partial": not reader.is_complete,
                **reader.facts(),
            }

    def curves(self, query: Mapping[str, str]) -> Any:
        """Return the curves of a run in a range of time."""
        reader = self.reader(query)
        reader.update(READ_S)
        with reader.open():
            columns = reader.columns_now()
            curves = make_curves(
                columns,
                _plain_number(reader.index.header.get("objective_s")),
                _number(query, "from"),
                _number(query, "to"),
                int(_number(query, "points") or 1000),
            )
            return curves | {"is_partial": columns is not reader.columns}

    def tick(self, query: Mapping[str, str]) -> Any:
        """Return the pipeline and the decision at a time."""
        reader = self.reader(query)
        reader.update(READ_S)
        with reader.open():
            if not len(reader.index):
                return {"graph": None, "story": None, "number": None}
            at = _number(query, "at")
            number = len(reader.index) - 1 if at is None else reader.index.find(at)
            tick = reader.index.tick(number)
            if tick is None:
                return {"graph": None, "story": None, "number": number}
            measured = tick if tick.snapshot is not None else _last_measured(reader, number)
            upstream = dict(reader.columns_now().upstream)
            return {
                "number": number,
                "at": tick.at,
                "graph": draw_graph(tick, measured or tick, upstream),
                "hosts": view_hosts(reader, number, tick, measured),
                "instances": view_instances(measured),
                "story": tell_decision(reader, number),
            }

    def decisions(self, query: Mapping[str, str]) -> Any:
        """Return decisions as a list."""
        reader = self.reader(query)
        kind = query.get("kind", "changes")
        if kind not in KINDS:
            raise InputError("kind", f"must be one of {', '.join(KINDS)}")
        before, at = _number(query, "before"), _number(query, "at")
        reader.update(READ_S)
        with reader.open():
            if before is None and at is not None:
                before = reader.index.find(at)
            return list_decisions(
                reader,
                kind=kind,
                operator=query.get("operator", ""),
                text=query.get("text", ""),
                before=None if before is None else int(before),
                limit=int(_number(query, "limit") or 50),
            )

    def decision(self, query: Mapping[str, str]) -> Any:
        """Return one decision with all details."""
        reader = self.reader(query)
        reader.update(READ_S)
        with reader.open():
            story = tell_decision(reader, int(_number(query, "number") or 0))
        if story is None:
            raise InputError("number", "there is no such tick, or it is damaged")
        return story

    def health(self, query: Mapping[str, str]) -> Any:
        """Return problems, warnings and events in words."""
        reader = self.reader(query)
        reader.update(READ_S)
        return self._health.read(reader, _number(query, "at"))

    def compare(self, query: Any) -> Any:
        """Return the scores of up to four runs, and who is better by how much."""
        names = query.getlist("run")[:MAX_COMPARED]
        if not names:
            raise InputError("run", "missing")
        scores, sentences = [], []
        for name in names:
            reader = self.library.reader(name)
            reader.update(READ_S)
            with reader.open():
                is_short = len(reader.index) <= MAX_SCORED_TICKS
                result = reader.result
                known = scores_of(reader.index, result) if result or is_short else None
                seconds = reader.end_s
            scores.append(known)
            sentences.append([*summarize(known, seconds, result)])
        rows = compare_scores(names, scores)
        return {
            "runs": names,
            "sentences": sentences,
            "remarks": [*remark_comparison(names, scores)],
            "rows": [
                {
                    "label": row.label,
                    "values": [figure_text(value, row.unit) for value in row.values],
                    "best": row.best,
                    "verdict": row.verdict,
                }
                for row in rows
            ],
        }

    def replay(self, query: Mapping[str, str]) -> Any:
        """Return what another policy would have wanted."""
        points = int(_number(query, "points") or 1000)
        return replay_policy(self.reader(query), query.get("policy", ""), points)


def _last_measured(reader: RunReader, number: int) -> Tick | None:
    """Return the last tick with measures up to a number; None if there is none near it."""
    ticks = reader.index.read(max(0, number + 1 - _MAX_BACK), number + 1)
    measured = next((data for data in reversed(ticks) if "snapshot" in data), None)
    return None if measured is None else read_tick(measured)


def _number(query: Mapping[str, str], name: str) -> float | None:
    """Read a number of a query; `InputError` if it is none."""
    text = query.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise InputError(name, "must be a number") from None
    if not abs(value) < 1e15:
        raise InputError(name, "must be a finite number")
    return value


def _plain_number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
