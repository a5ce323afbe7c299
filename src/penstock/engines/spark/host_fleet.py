"""The hosts of a running pipeline: their table in the run directory, moves, measures."""

from collections.abc import Mapping, Sequence

from penstock.core.decision import Move
from penstock.core.snapshot import HostSnapshot, OperatorSnapshot
from penstock.engines.events import RunningEvent
from penstock.engines.microbatch.host_snapshot import build_hosts
from penstock.engines.microbatch.host_table import HostTable, find_operators
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.slice_assignment import read_homes
from penstock.engines.microbatch.slice_usage import read_state_bytes
from penstock.engines.port import HOSTS
from penstock.engines.spark.io.commands import Command
from penstock.engines.spark.run_layout import RunLayout, read_json, write_json
from penstock.errors import RescaleError
from penstock.pipelines.host_declaration import Hosts, count_slices
from penstock.pipelines.pipeline import Pipeline

Trackers = Mapping[str, OperatorTracker]


class HostFleet:
    """Places slices on hosts; without declared hosts it places nothing."""

    def __init__(self, pipeline: Pipeline, layout: RunLayout) -> None:
        self._layout, self._declared = layout, pipeline.hosts
        self._slices = count_slices(pipeline) if pipeline.hosts else {}
        self._table = HostTable(hosts=(), homes={}, started=0)
        #: Hosts before a change that is in progress, and when it was requested.
        self._changing: tuple[int, float] | None = None
        #: The last measures of each operator.
        self._measured: dict[str, OperatorSnapshot] = {}

    def begin(self) -> None:
        """Continue with the placement of an earlier start, or spread the slices."""
        if self._declared is None:
            return
        data = read_json(self._layout.hosts)
        table = HostTable.from_json(data) if data else None
        if table is None or not table.fits(self._slices):
            table = HostTable.spread(self._slices, self._declared.start)
        self._save(table)

    def _save(self, table: HostTable) -> None:
        write_json(self._layout.hosts, table.to_json())
        self._table = table

    def __contains__(self, operator: str) -> bool:
        return operator in self._slices

    def __bool__(self) -> bool:
        return self._declared is not None

    @property
    def most(self) -> int | None:
        """The most hosts that there may be."""
        return self._declared.most if self._declared else None

    def count_replicas(self, operator: str) -> int:
        """Return the replicas of an operator: the hosts that have slices of it."""
        return len(self._table.hosts_of(operator))

    def make_command(self, operator: str, *, hold: bool = False) -> Command:
        """Return the command of an operator whose slices are on hosts."""
        declared = self._declared or Hosts()
        return Command(
            replicas=self.count_replicas(operator),
            hold=hold,
            pins=self._table.pins(operator),
            hosts=self._table.hosts_of(operator),
            share=declared.share,
        )

    def move(self, moves: Sequence[Move], now: float) -> set[str]:
        """Change the placement; return the operators whose slices move."""
        assert self._declared is not None
        table, before = self._table.move(moves), len(self._table.hosts)
        if len(table.hosts) > self._declared.most:
            problem = f"{len(table.hosts)} hosts are needed, at most {self._declared.most} exist"
            raise RescaleError(problem)
        self._save(table)
        if len(table.hosts) != before:
            first = self._changing[0] if self._changing else before
            self._changing = (first, now)
        return find_operators(moves)

    def report_change(self, trackers: Trackers, now: float) -> list[RunningEvent]:
        """Return an event when all slices have arrived on the hosts of the last change."""
        if self._changing is None:
            return []
        for name in self._slices:
            record = trackers[name].records[-1] if trackers[name].records else None
            is_idle = trackers[name].offered == trackers[name].taken
            if not is_idle and (record is None or read_homes(record) != self._table.pins(name)):
                return []
        (before, since), self._changing = self._changing, None
        return [
            RunningEvent(
                at=now,
                operator=HOSTS,
                replicas=len(self._table.hosts),
                before=before,
                after_s=round(max(0.0, now - since), 3),
            )
        ]

    def observe(
        self, operators: Mapping[str, OperatorSnapshot], trackers: Trackers
    ) -> Mapping[str, HostSnapshot]:
        """Return the hosts with what their slices used."""
        state_bytes = {name: read_state_bytes(trackers[name].records) for name in self._slices}
        measured = {
            name: self._find_measures(operators[name], trackers[name]) for name in self._slices
        }
        return build_hosts(self._table, measured, state_bytes)

    def _find_measures(
        self, operator: OperatorSnapshot, tracker: OperatorTracker
    ) -> OperatorSnapshot:
        """Return the last measures of an operator whose batch takes longer than a window.

        It would look idle, and its hosts would be released, while it works.
        """
        if "slice_cpu" in operator.extra or tracker.offered == tracker.taken:
            self._measured[operator.name] = operator
        return self._measured.get(operator.name, operator)
