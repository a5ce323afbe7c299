"""A query whose factory, state and checkpoint are made up."""

from penstock.engines.attached.restart.query_restarter import StateFacts
from penstock.errors import RescaleError


class FakeHost:
    """Spark, as far as a restart needs it. `broken` numbers of partitions never run."""

    def __init__(self, partitions: int = 2, *, has_state: bool = True) -> None:
        self.log: list[str] = []
        self.running: int | None = partitions
        self.state: StateFacts | None = StateFacts(partitions, True) if has_state else None
        #: Numbers with which the factory raises, no batch ends, or state cannot be repartitioned.
        self.refused: set[int] = set()
        self.silent: set[int] = set()
        self.stuck: set[int] = set()
        self.stopped = False
        #: Whether a stop leaves a batch that did not end.
        self.stops_late = False
        #: The factory sets so many shuffle partitions for each one.
        self.factor = 1

    def is_stopped(self) -> bool:
        return self.stopped

    def stop(self) -> None:
        if self.running is None:
            return
        self.log.append("stop")
        self.running = None
        if self.stops_late and self.state is not None:
            self.state = StateFacts(self.state.partitions, False)
            self.stops_late = False

    def start(self, partitions: int) -> int:
        self.log.append(f"start {partitions}")
        if partitions in self.refused:
            raise ValueError(f"no {partitions} connections\n  at line 3")
        if self.state is not None and self.state.is_interrupted:
            raise RescaleError("a repartition was interrupted")
        self.running = partitions
        return partitions * self.factor

    def verify(self) -> None:
        if self.running is None:
            raise RescaleError("it has stopped")
        if self.running in self.silent:
            if self.state is not None:  # its batch was planned and did not end
                self.state = StateFacts(self.state.partitions, False)
            raise RescaleError("no batch was committed within 5 s")
        if self.state is not None:
            self.state = StateFacts(self.state.partitions, True)

    def read_state(self) -> StateFacts | None:
        return self.state

    def repartition(self, partitions: int) -> None:
        self.log.append(f"repartition {partitions}")
        assert self.running is None
        if partitions in self.stuck:
            self.state = StateFacts(partitions, False, is_interrupted=True)
            self.stuck.discard(partitions)
            raise RescaleError("the disk is full")
        assert self.state is not None
        assert self.state.is_committed or self.state.is_interrupted
        self.state = StateFacts(partitions, True)

    def count_state_rows(self) -> int | None:
        return 50 if self.state is not None else None


class FakeLog:
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, query: str, step: str, before: int, partitions: int) -> None:
        self.lines.append(f"{query} {before}->{partitions} {step}")
