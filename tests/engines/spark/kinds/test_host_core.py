"""The emulated core of a host: slices take turns, and wait as a slower core would."""

import threading
import time

import pytest
from tests.tools.timing import time_call

from penstock.engines.spark.kinds.host_core import HostCore
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.cpu_clock import emulate_work


def test_without_a_host_nothing_waits(layout: RunLayout) -> None:
    core = HostCore.of(layout, "", 0.1)

    def work() -> None:
        with core.occupy() as usage:
            emulate_work(0.01)
        assert usage.cpu_s >= 0.01

    assert time_call(work, 0.1) < 0.1
    assert not layout.run.exists()


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_a_share_of_a_core_makes_work_longer_by_its_inverse(
    layout: RunLayout, share: float
) -> None:
    core = HostCore.of(layout, "h1", share)
    start = time.perf_counter()
    with core.occupy() as usage:
        emulate_work(0.05)
    took_s = time.perf_counter() - start
    assert took_s >= 0.05 / share
    # the wait counts as computation: the host has used so much of its own core
    assert usage.cpu_s == pytest.approx(0.05 / share, rel=0.6)


def test_a_wait_for_a_real_core_is_part_of_the_emulated_wait(layout: RunLayout) -> None:
    core = HostCore.of(layout, "h1", 0.1)

    def work() -> None:
        with core.occupy() as usage:
            emulate_work(0.05)
            time.sleep(0.3)  # as if the machine had no core for it
        # with the 0.3 s it would be 3.5; a busy machine needs more than 0.05 s for the work
        assert 0.45 <= usage.cpu_s < 1.5

    assert 0.5 <= time_call(work, 0.75) < 0.75


def test_slices_of_a_host_take_turns_and_those_of_others_do_not(layout: RunLayout) -> None:
    inside: dict[str, int] = {"h1": 0, "h2": 0}
    most: dict[str, int] = {"h1": 0, "h2": 0, "both": 0}
    guard = threading.Lock()

    def work(host: str) -> None:
        core = HostCore.of(layout, host, 1.0)
        for _ in range(5):
            with core.occupy():
                with guard:
                    inside[host] += 1
                    most[host] = max(most[host], inside[host])
                    most["both"] = max(most["both"], sum(inside.values()))
                time.sleep(0.01)
                with guard:
                    inside[host] -= 1

    threads = [threading.Thread(target=work, args=(host,)) for host in ("h1", "h1", "h2", "h2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert (most["h1"], most["h2"]) == (1, 1)
    assert most["both"] == 2


def test_an_error_frees_the_core(layout: RunLayout) -> None:
    core = HostCore.of(layout, "h1", 1.0)
    with pytest.raises(ValueError, match="no"), core.occupy():
        raise ValueError("no")
    with core.occupy():
        pass
