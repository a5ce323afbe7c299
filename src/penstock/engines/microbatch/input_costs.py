"""The cost of a row of each input, for operators that read several topics. Pure.

A row of one input may cost a thousand times as much as a row of another. So a call of the function
takes c + b1 n1 + b2 n2 + ... seconds for n1, n2, ... rows. The coefficients are estimated by least
squares over the calls of the last batches, whose weights decay; none is negative. What the calls
do not tell apart stays as it was: each batch begins with the last estimate.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord

#: Rows of each replica in the very first batch of an input, when nothing has been measured.
FIRST_ROWS = 8
#: The rows of an input grow at most by this factor from batch to batch.
GROWTH = 16
#: Weight of the last batch.
_NEW = 0.5
#: Weight of the last estimate, as a part of the weight of the data.
_KEEP = 0.02
#: Passes over the coefficients; each minimises by one of them after the other.
_PASSES = 50
#: The coefficient of a call without rows.
_CALL = ""

#: Rows of each input in a call of the function, and its seconds.
Call = tuple[Mapping[str, int], float]
Sums = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCosts:
    """Seconds of a call and of a row of each input, and the size of the last batches."""

    #: Decaying sums of products: of two inputs, and of an input with the seconds.
    products: Sums = FrozenDict()
    targets: Mapping[str, float] = FrozenDict()
    #: Seconds of a row in a call, by input; of a call without rows under the name "".
    seconds: Mapping[str, float] = FrozenDict()
    #: Calls in which a row takes part: all slices for a broadcast input, one for others.
    calls_per_row: Mapping[str, float] = FrozenDict()
    #: Rows of a replica in the last batch that had rows of the input.
    last_rows: Mapping[str, float] = FrozenDict()
    #: Rows of the last batch.
    last_batch: Mapping[str, int] = FrozenDict()
    #: Calls of a batch with slices; 0 if each replica has one call.
    slices: int = 0
    #: The time of the slowest replica, for all of them, over the seconds in calls.
    overhead: float = 1.0

    def after(self, record: BatchRecord) -> "InputCosts":
        """Return the costs with one more batch; one without calls changes nothing."""
        calls = [call for task in record.tasks for call in read_calls(task)]
        in_calls_s = sum(seconds for _, seconds in calls)
        if not calls or in_calls_s <= 0:
            return self
        worked = [task for task in record.tasks if any(map(sum, task.inputs.values()))]
        rows = count_rows(record)
        present = [name for name, number in rows.items() if number]
        products, targets = self._add(calls)
        wide = {name: sum(call.get(name, 0) for call, _ in calls) / rows[name] for name in present}
        now = max(1.0, max(task.busy_s for task in worked) * len(worked) / in_calls_s)
        is_first = not self.seconds
        return InputCosts(
            products=products,
            targets=targets,
            seconds=self._fit(products, targets, present, calls),
            calls_per_row=FrozenDict({**self.calls_per_row, **wide}),
            last_rows=FrozenDict(
                {**self.last_rows, **{n: rows[n] / len(record.tasks) for n in present}}
            ),
            last_batch=FrozenDict(rows),
            slices=sum(len(task.slices) for task in record.tasks),
            overhead=now if is_first else self.overhead * (1 - _NEW) + now * _NEW,
        )

    def _add(self, calls: Sequence[Call]) -> tuple[Sums, Mapping[str, float]]:
        products = {pair: value * (1 - _NEW) for pair, value in self.products.items()}
        targets = {name: value * (1 - _NEW) for name, value in self.targets.items()}
        for rows, seconds in calls:
            point = {_CALL: 1, **{name: number for name, number in rows.items() if number}}
            for topic, n in point.items():
                targets[topic] = targets.get(topic, 0.0) + n * seconds
                for other, m in point.items():
                    products[topic, other] = products.get((topic, other), 0.0) + n * m
        return FrozenDict(products), FrozenDict(targets)

    def _fit(
        self,
        products: Sums,
        targets: Mapping[str, float],
        present: Sequence[str],
        calls: Sequence[Call],
    ) -> Mapping[str, float]:
        """Minimise the squared error; inputs without rows in this batch keep their seconds."""
        fitted = dict(self.seconds)
        if not fitted:  # at first, all rows are thought to cost the same
            units = sum(sum(rows.values()) for rows, _ in calls)
            fitted = dict.fromkeys(present, sum(s for _, s in calls) / max(1, units))
        names = (*present, _CALL)
        before = {name: fitted.get(name) for name in names}
        for _ in range(_PASSES):
            for name in names:
                own, last = products[name, name], before[name]
                others = sum(
                    products.get((name, other), 0.0) * value
                    for other, value in fitted.items()
                    if other != name
                )
                kept = _KEEP * own if last is not None else 0.0
                best = (targets[name] - others + kept * (last or 0.0)) / (own + kept)
                fitted[name] = max(0.0, best)
        return FrozenDict(fitted)

    def allot(
        self,
        waiting: Mapping[str, int],
        replicas: int,
        batch_s: float,
        first: Collection[str] = (),
    ) -> dict[str, int]:
        """Return how many rows of each input a batch takes; inputs in `first` come first.

        As many as the replicas process in the planned time, besides the calls, but enough that
        the rows cost as much as the calls. Each input has the same part of its waiting rows.
        """
        calls_s = (self.slices or replicas) * self.seconds.get(_CALL, 0.0) * self.overhead
        last_s = sum(number * self._row_s(name) for name, number in self.last_batch.items())
        left_s = max(batch_s * replicas - calls_s, min(calls_s, 2 * last_s))
        taken: dict[str, int] = {}
        for group in (
            [name for name in waiting if name in first],
            [name for name in waiting if name not in first],
        ):
            wanted = {name: min(waiting[name], self._max_rows(name, replicas)) for name in group}
            all_s = sum(number * self._row_s(name) for name, number in wanted.items())
            part = min(1.0, max(0.0, left_s) / all_s) if all_s > 0 else 1.0
            rows = {name: math.ceil(round(number * part, 6)) for name, number in wanted.items()}
            left_s -= sum(number * self._row_s(name) for name, number in rows.items())
            taken |= rows
        if not any(taken.values()):  # inputs that come first may take all of the time
            return {name: min(1, number) for name, number in waiting.items()}
        return {name: taken[name] for name in waiting}

    def _row_s(self, name: str) -> float:
        """Return the seconds of all replicas for one row of an input."""
        wide = self.calls_per_row.get(name, 1.0)
        return self.seconds.get(name, 0.0) * wide * self.overhead

    def _max_rows(self, name: str, replicas: int) -> int:
        if name not in self.last_rows:
            return FIRST_ROWS * replicas
        return math.ceil(max(self.last_rows[name], FIRST_ROWS) * GROWTH) * replicas


def read_calls(task: TaskRecord) -> Iterable[Call]:
    """Yield the calls of a task that had rows: one for each slice, or one for all of it."""
    for index in range(max(map(len, task.inputs.values()), default=0)):
        rows = {name: counts[index] for name, counts in task.inputs.items()}
        if any(rows.values()):
            yield rows, task.loads[index] if task.loads else task.busy_s


def count_rows(record: BatchRecord) -> dict[str, int]:
    """Return the rows of each input in a batch; a broadcast row counts once."""
    names = dict.fromkeys(name for task in record.tasks for name in task.inputs)
    return {
        name: min(
            sum(sum(task.inputs.get(name, ())) for task in record.tasks),
            record.end.get(name, 0) - record.start.get(name, 0),
        )
        for name in names
    }
