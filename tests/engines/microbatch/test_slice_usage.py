"""What slices use, from the records of their batches."""

from dataclasses import replace

import pytest
from tests.tools.recording import batch, task

from penstock.engines.microbatch.batch_record import read_record, write_record
from penstock.engines.microbatch.slice_usage import (
    SliceUsage,
    format_slices,
    measure_slices,
    read_state_bytes,
)

FIRST = replace(
    task(),
    slices=(0, 2),
    loads=(0.1, 0.4),
    slice_cpu_s=(0.1, 0.3),
    slice_bytes_in=(100, 200),
    slice_bytes_out=(10, 20),
    slice_state_bytes=(1000, 3000),
    host="h1",
)
SECOND = replace(FIRST, slices=(2, 1), slice_state_bytes=(4000, 2000))


def test_usage_is_added_up_wherever_a_slice_is() -> None:
    usage = measure_slices([FIRST, SECOND], 2.0)
    assert sorted(usage) == [0, 1, 2]
    assert usage[2].cpu == pytest.approx((0.3 + 0.1) / 2)
    assert usage[2].bytes_in_per_s == (200 + 100) / 2
    assert usage[1] == SliceUsage(
        cpu=0.15, bytes_in_per_s=100.0, bytes_out_per_s=10.0, state_bytes=2000
    )
    assert usage[2].state_bytes == 4000
    shown = format_slices(usage, 4)
    assert shown["slice_state_bytes"] == (1000, 2000, 4000, 0)


def test_records_without_probes_show_nothing() -> None:
    old = replace(task(), slices=(0, 1), loads=(0.1, 0.2))
    assert measure_slices([old], 1.0) == {}
    assert format_slices({}, 4) == {}
    assert read_state_bytes([]) == {}


def test_a_record_keeps_probes() -> None:
    record = batch(0, tasks=[FIRST, SECOND])
    assert read_record(write_record(record)) == record
    assert read_state_bytes([record]) == {0: 1000, 1: 2000, 2: 4000}
