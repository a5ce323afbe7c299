"""Two processes of one run: the second takes over when the first is killed, and ends when it stops.

The pipeline is examples/revenue; its database must equal a batch query over the same files.
"""

import time
from pathlib import Path

import pytest
from tests.cli.commands.test_run import nothing_left_of, started
from tests.system.test_open_pipeline import WITHIN_S, until
from tests.system.test_revenue import EXAMPLE, ROWS, end_of, in_database, truth, write_files

from penstock.cli.main import main

pytestmark = [pytest.mark.spark, pytest.mark.long]
#: Behind the last file a minute is left out, so that all windows are closed.
BACKLOG, MORE, LAST = range(24), range(24, 42), range(61, 62)


def options_of(home: Path) -> list[str]:
    options = [str(EXAMPLE / "revenue.py"), "--set", f"data={home}", "--set", "lookup_s=0.004"]
    return [*options, "--policy", "ds2", "--interval", "2", "--plain"]


def test_a_standby_takes_over_from_a_killed_driver(tmp_path: Path) -> None:
    home, run = tmp_path / "shop", tmp_path / "run"
    options = [*options_of(home), "--out", str(run), "--standby"]
    write_files(home, BACKLOG)
    with started(run, *options) as first:
        until(first, lambda: end_of(run, "enriched") > 4 * ROWS)
        assert "standby:" not in first.err, "nobody was there before it"
        with started(run, *options) as second:
            until(second, lambda: f"process {first.process.pid} holds" in second.err)
            first.process.kill()
            killed_at = time.monotonic()
            until(second, lambda: "taking over" in second.err)
            before, freed_s = end_of(run, "enriched"), time.monotonic() - killed_at
            write_files(home, MORE)
            write_files(home, LAST)
            until(second, lambda: end_of(run, "enriched") > before)
            print(f"lock free after {freed_s:.1f} s, rows after {time.monotonic() - killed_at:.1f}")
            expected, damaged = truth(home)
            until(second, lambda: in_database(home) == expected)
            assert main(["stop", str(run), "--timeout", str(WITHIN_S)]) == 0
            assert second.ends()[0] == 143, second.err
    assert nothing_left_of(run)
    assert len(expected) == 7 * 6
    assert end_of(run, "parse-errors") == damaged > 0


def test_a_standby_ends_when_the_run_is_stopped(tmp_path: Path) -> None:
    home, run = tmp_path / "shop", tmp_path / "run"
    options = [*options_of(home), "--out", str(run)]
    write_files(home, BACKLOG)
    with started(run, *options) as first:
        until(first, lambda: end_of(run, "enriched") > 0)
        with started(run, *options, "--standby") as second:
            until(second, lambda: "waiting for it to end" in second.err)
            assert main(["stop", str(run), "--timeout", str(WITHIN_S)]) == 0
            assert first.ends()[0] == 143, first.err
            assert second.ends()[0] == 143, "a supervisor shall not start it again"
            assert "ended by itself" in second.err
