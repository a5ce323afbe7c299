"""A batch that takes much longer than usual is noticed, once."""

from penstock.engines.spark.queries.batch_supervisor import MIN_SLOW_S, BatchTimer


def looks(timer: BatchTimer, batch: int, seconds: range) -> list[float]:
    found = [timer.update(float(second), batch, is_busy=True) for second in seconds]
    return [elapsed for elapsed in found if elapsed is not None]


def test_a_batch_that_hangs_is_noticed_once() -> None:
    timer = BatchTimer(1.0)
    assert looks(timer, 0, range(100)) == [MIN_SLOW_S + 1]


def test_the_next_slow_batch_is_noticed_again() -> None:
    timer = BatchTimer(1.0)
    looks(timer, 0, range(12))
    assert looks(timer, 1, range(12, 100)) != []


def test_batches_that_are_always_long_are_usual() -> None:
    timer = BatchTimer(1.0)
    noticed = []
    for batch in range(30):
        noticed += [(batch, s) for s in looks(timer, batch, range(batch * 20, batch * 20 + 20))]
        timer.update(batch * 20.0 + 20, batch + 1, is_busy=False)
    assert [batch for batch, _ in noticed] == [0]


def test_an_operator_that_waits_for_rows_is_not_slow() -> None:
    timer = BatchTimer(1.0)
    assert all(timer.update(float(s), 3, is_busy=False) is None for s in range(1000))
    assert all(timer.update(s, 3, is_busy=s % 2 == 0) is None for s in range(1000, 2000))
