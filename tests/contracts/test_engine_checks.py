"""The checks of the contract judge the work that batches recorded, not what a clock says."""

from collections.abc import Callable

import pytest
from tests.contracts.engine_checks import (
    OFFERED_RATE,
    REPLICA_RATE,
    TWO,
    Paced,
    check_a_snapshot_shows_every_operator,
    check_fewer_replicas_carry_less,
    check_more_replicas_carry_more,
    check_two_replicas_carry_twice_as_much_as_one,
)

from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.port import Batch, Plan, Status

#: Operators get a tenth of the processor: the rest is taken by other programs.
SHARE = 0.1


class BusyMachine:
    """An engine whose replicas wait for the processor most of the time."""

    def __init__(self, gain: float) -> None:
        """`gain` is the part of its work that a replica more than one adds."""
        self._at, self._gain, self._batches = 0.0, gain, 0
        self._replicas = dict(TWO)

    def advance(self, seconds: float) -> None:
        self._at += seconds

    def apply(self, plan: Plan) -> None:
        self._replicas |= plan.replicas

    def status(self) -> Status:
        batches = {name: (self._batch(k),) for name, k in self._replicas.items()}
        return Status(
            at=self._at, requested=self._replicas, running=self._replicas, batches=batches
        )

    def _batch(self, k: int) -> Batch:
        """A second of work, which took ten."""
        rate = REPLICA_RATE * (1 + self._gain * (k - 1))
        return Batch(
            planned_s=self._at - 1 / SHARE,
            committed_s=self._at,
            replicas=k,
            rows_in=round(rate),
            rows_out=round(rate),
            busy_s=float(k),
            longest_s=1.0,
            waiting=1000,
        )

    def observe(self) -> Snapshot:
        operators = {
            name: OperatorSnapshot(
                name=name,
                upstream=("first",) if name == "second" else (),
                parallelism=k,
                max_parallelism=6,
                # the same for any k: the machine has no more to give
                input_rate=SHARE * REPLICA_RATE,
                busy=0.9,
                queue=1000.0,
            )
            for name, k in self._replicas.items()
        }
        return Snapshot(at=self._at, offered={"first": OFFERED_RATE}, operators=operators)


CHECKS = (
    check_a_snapshot_shows_every_operator,
    check_more_replicas_carry_more,
    check_fewer_replicas_carry_less,
    check_two_replicas_carry_twice_as_much_as_one,
)


def make(gain: float) -> Callable[[], Paced]:
    return lambda: Paced(BusyMachine(gain))  # type: ignore[arg-type]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_busy_machine_passes(check: Callable[[Callable[[], Paced]], None]) -> None:
    check(make(gain=1.0))


def test_replicas_that_add_nothing_do_not() -> None:
    for check in (check_more_replicas_carry_more, check_two_replicas_carry_twice_as_much_as_one):
        with pytest.raises(AssertionError):
            check(make(gain=0.0))
