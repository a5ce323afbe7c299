"""CPU time of this process and its children."""

import subprocess
import sys
import time

from penstock.engines.spark.cluster.process_times import read_process_times


def test_children_count_while_they_run_and_when_they_have_ended() -> None:
    before = read_process_times()
    code = (
        "import time\nwhile time.process_time() < 0.5: pass\n"
        "print('done', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = read_process_times() - before
        assert running.python_s >= 0.4
        assert running.jvm_s == 0
        child.kill()
    ended = read_process_times() - before
    assert ended.own_s >= 0.4  # a child that has ended counts for its parent
    assert ended.total_s >= running.total_s - 0.1


def test_time_of_this_process_counts() -> None:
    before, began_s = read_process_times(), time.process_time()
    while time.process_time() < began_s + 0.3:
        pass
    assert (read_process_times() - before).own_s >= 0.25
