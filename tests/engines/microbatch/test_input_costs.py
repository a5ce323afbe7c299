"""Rows of inputs that cost differently: batches last as planned, against a formula of the costs."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.tools.recording import batch, task

from penstock.engines.microbatch.admission import FIRST_ROWS, Throughput
from penstock.engines.microbatch.batch_record import BatchRecord, read_record, write_record
from penstock.engines.microbatch.input_costs import InputCosts

SLICES = 16


@dataclass
class Matcher:
    """An operator whose slices get keyed rows and all broadcast rows, at known costs."""

    call_s: float
    keyed_s: float
    broadcast_s: float
    replicas: int = 2
    batch_s: float = 1.0
    speed: Throughput = field(default_factory=Throughput)
    position: dict[str, int] = field(default_factory=lambda: {"keyed": 0, "all": 0})

    def run(self, **waiting: int) -> tuple[dict[str, int], float]:
        """Run one batch; return its rows, and the time of its slowest replica."""
        queue = {"keyed": 0, "all": 0, **waiting}
        rows = self.speed.allot(queue, self.replicas, self.batch_s)
        assert all(rows[name] <= queue[name] for name in queue)
        record = self.record(rows)
        self.speed = self.speed.after(record)
        return rows, max(task.busy_s for task in record.tasks)

    def record(self, rows: dict[str, int]) -> BatchRecord:
        keyed = [rows["keyed"] // SLICES + (n < rows["keyed"] % SLICES) for n in range(SLICES)]
        tasks = []
        for index in range(self.replicas):
            own = tuple(range(index, SLICES, self.replicas))
            counts = [keyed[n] + (rows["all"] if n == 0 else 0) for n in own]
            loads = [
                self.call_s + self.keyed_s * keyed[n] + self.broadcast_s * rows["all"]
                if keyed[n] or rows["all"]
                else 0.0
                for n in own
            ]
            made = replace(
                task(rows=sum(counts), busy_s=sum(loads)),
                slices=own,
                loads=tuple(loads),
                counts=tuple(counts),
                inputs={
                    "keyed": tuple(keyed[n] for n in own),
                    "all": tuple(rows["all"] for _ in own),
                },
            )
            tasks.append(made)
        start = dict(self.position)
        self.position = {name: start[name] + rows[name] for name in start}
        return replace(batch(0, tasks=tasks), start=start, end=self.position)


COST = st.floats(1e-7, 1e-3)


@given(COST, COST, st.floats(0.0, 0.02), st.integers(1, 5))
def test_cheap_rows_of_one_input_do_not_make_batches_of_the_other_too_long(
    keyed_s: float, broadcast_s: float, call_s: float, replicas: int
) -> None:
    operator = Matcher(call_s, keyed_s, broadcast_s, replicas)
    for _ in range(8):
        operator.run(keyed=10**9)
    calls_s = call_s * SLICES / replicas
    aim_s = max(operator.batch_s, 2 * calls_s)
    taken = []
    for number in range(12):
        rows, took_s = operator.run(all=10**9)
        taken.append(rows["all"])
        # a replica has a slice more than another, and a row cannot be divided
        unevenness = replicas * -(-SLICES // replicas) / SLICES
        assert took_s <= 1.2 * unevenness * (aim_s + broadcast_s * SLICES) + calls_s, number
    assert taken[0] == FIRST_ROWS * replicas
    # from the second batch on, batches are as long as planned
    assert took_s >= 0.5 * operator.batch_s or took_s >= 1.5 * calls_s


@given(COST, COST, st.floats(0.0, 0.01))
def test_mixed_batches_are_as_long_as_planned(
    keyed_s: float, broadcast_s: float, call_s: float
) -> None:
    operator = Matcher(call_s, keyed_s, broadcast_s)
    for _ in range(12):
        operator.run(keyed=10**7, all=10**4)
    rows, took_s = operator.run(keyed=10**7, all=10**4)
    work_s = (10**7 * keyed_s + 10**4 * broadcast_s * SLICES) / operator.replicas
    assume(work_s > 4)
    assert 0.5 < took_s < 1.7
    assert rows["keyed"] > 0 < rows["all"]


def test_costs_are_told_apart() -> None:
    operator = Matcher(call_s=0.004, keyed_s=1e-5, broadcast_s=3e-4)
    for number in range(30):
        operator.run(keyed=100 + 997 * number % 1000, all=50 + 31 * number % 200)
    seconds = operator.speed.costs.seconds
    assert seconds["keyed"] == pytest.approx(1e-5, rel=0.3)  # a hundredth of the whole
    assert seconds["all"] == pytest.approx(3e-4, rel=0.05)
    assert seconds[""] == pytest.approx(0.004, rel=0.05)


def test_an_input_without_rows_keeps_what_is_known_of_it() -> None:
    operator = Matcher(call_s=0.0, keyed_s=1e-5, broadcast_s=3e-4)
    for _ in range(5):
        operator.run(all=10**6)
    before = operator.speed.costs.seconds["all"]
    for _ in range(200):
        operator.run(keyed=10**6)
    assert operator.speed.costs.seconds["all"] == before
    _, took_s = operator.run(all=10**6)
    assert took_s == pytest.approx(1.0, rel=0.3)


def test_tasks_without_the_first_slice_count() -> None:
    operator = Matcher(call_s=0.0, keyed_s=1e-5, broadcast_s=0.01, replicas=4)
    operator.run(all=100)
    assert operator.speed.costs.last_batch == {"keyed": 0, "all": 32}
    assert operator.speed.costs.calls_per_row["all"] == SLICES
    rows, took_s = operator.run(all=100)
    # 4 replicas x 1 s at 16 x 10 ms a row
    assert rows["all"] == 25
    assert took_s == pytest.approx(1.0)


def test_inputs_that_come_first_take_what_they_need() -> None:
    costs = InputCosts(
        seconds={"a": 0.1, "b": 0.1}, last_rows={"a": 100.0, "b": 100.0}, last_batch={"a": 1}
    )
    assert costs.allot({"a": 30, "b": 30}, 1, 2.0) == {"a": 10, "b": 10}
    assert costs.allot({"a": 30, "b": 30}, 1, 2.0, ["b"]) == {"a": 0, "b": 20}
    assert costs.allot({"a": 30, "b": 5}, 1, 2.0, ["b"]) == {"a": 15, "b": 5}


def test_operators_without_slices_learn_by_task() -> None:
    speed = Throughput()
    for number in range(6):
        tasks = [
            replace(task(rows=10, busy_s=0.1), inputs={"a": (10,), "b": (0,)}),
            replace(task(rows=5, busy_s=1.0), inputs={"a": (0,), "b": (5,)}),
        ]
        start = {"a": 10 * number, "b": 5 * number}
        end = {"a": 10 * number + 10, "b": 5 * number + 5}
        speed = speed.after(replace(batch(number, tasks=tasks), start=start, end=end))
    assert speed.costs.seconds["b"] == pytest.approx(20 * speed.costs.seconds["a"], rel=0.2)


def test_a_record_keeps_the_rows_of_inputs() -> None:
    record = Matcher(0.1, 0.1, 0.1).record({"keyed": 5, "all": 2})
    assert read_record(write_record(record)) == record


def test_a_single_input_is_dealt_as_before() -> None:
    speed = Throughput().after(batch(0, tasks=[task(rows=100, busy_s=1.0)] * 2))
    assert speed.costs == InputCosts()
    assert speed.allot({"a": 1000}, 2, 0.5) == {"a": speed.limit(2, 0.5)}
