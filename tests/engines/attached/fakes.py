"""An application without Spark: queries that report what they are told to report."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.engines.attached.reports import kafka, make_report

from penstock.engines.attached.application import Report
from penstock.engines.attached.file_backlog import FileCounter
from penstock.engines.attached.task_facts import TaskFacts


class FakeQuery:
    """A query that reads `rows` in `work_s` every `every_s`, once `report_until` is called."""

    def __init__(
        self,
        name: str = "words",
        *,
        rows: int = 1000,
        work_s: float = 4.0,
        every_s: float = 5.0,
        backlog: int = 0,
        facts: TaskFacts | None = None,
    ) -> None:
        self.name, self.query_id = name, f"id-{name}"
        self.trigger_s: float | None = None
        self.rows, self.work_s, self.every_s = rows, work_s, every_s
        self.backlog, self.facts = backlog, facts
        self.active, self.working, self.error = True, False, ""
        self._batch, self._next_s, self._read = 0, 0.0, 0
        self._reports: list[Report] = []

    def report_until(self, second: float) -> None:
        """Make the reports of all batches that end before a second."""
        while self._next_s + self.work_s + 0.2 <= second:
            start, self._read = self._read, self._read + self.rows
            source = kafka([start], [self._read], [self._read + self.backlog])
            report = make_report(self._batch, self._next_s, work_s=self.work_s, sources=[source])
            self._reports.append(Report(report, self.facts))
            self._batch, self._next_s = self._batch + 1, self._next_s + self.every_s

    def read_new(self) -> Sequence[Report]:
        reports, self._reports = self._reports, []
        return reports

    def is_working(self) -> bool:
        return self.working

    def is_active(self) -> bool:
        return self.active

    def read_error(self) -> str:
        return self.error

    def make_counter(self, _number: int, _description: str) -> FileCounter | None:
        return None


class FakeApplication:
    """An application with fake queries."""

    cores = 1
    locality_wait_s: float | None = 3.0

    def __init__(self, *queries: FakeQuery) -> None:
        self.queries = list(queries)
        self.alive = True
        self.broken: Exception | None = None
        self.tasks: dict[str, int] = {}

    def find_queries(self) -> Sequence[Any]:
        if self.broken is not None:
            raise self.broken
        return [query for query in self.queries if query.active]

    def is_alive(self) -> bool:
        return self.alive

    def count_tasks(self) -> Mapping[str, int]:
        return self.tasks


class FakeCalls:
    """Spark with its defaults: a decommissioned executor stays and counts until it is killed."""

    def __init__(self, first: int = 1) -> None:
        self.staying = {str(number): True for number in range(first)}
        self.tasks = dict.fromkeys(self.staying, 0)
        self.total, self.next = first, first
        self.log: list[str] = []

    def alive(self) -> dict[str, bool]:
        return dict(self.staying)

    def request_total(self, total: int) -> None:
        self.log.append(f"total {total}")
        self.total = total

    def start_missing(self) -> None:
        while len(self.staying) < self.total:
            self.staying[str(self.next)], self.tasks[str(self.next)] = True, 0
            self.next += 1

    def release(self, names: Iterable[str]) -> None:
        for name in names:
            self.log.append(f"decommission {name}")
            self.staying[name] = False

    def count_active_tasks(self) -> dict[str, int]:
        return dict(self.tasks)

    def kill(self, names: Iterable[str]) -> None:
        for name in names:
            self.log.append(f"kill {name}")
            del self.staying[name], self.tasks[name]
            self.total -= 1

    def warm_up(self, names: Iterable[str]) -> None:
        self.log.append(f"warm {', '.join(names)}")
