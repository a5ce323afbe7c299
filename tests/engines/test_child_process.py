"""A child that is tied to its parent ends with it, and ignores Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = "import time; print('ready', flush=True); time.sleep(60)"
PARENT = f"""
import subprocess, sys
from penstock.engines.child_process import prepare_child
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], preexec_fn=prepare_child())
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is of Linux")
def test_the_kernel_kills_a_child_whose_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        lines = {it.stdout.readline().strip(), it.stdout.readline().strip()}
        child = int((lines - {"ready"}).pop())
        os.kill(child, signal.SIGINT)
        assert Path(f"/proc/{child}").exists()
        it.kill()
        it.wait()
        deadline_s = time.monotonic() + 5
        while Path(f"/proc/{child}").exists() and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert not Path(f"/proc/{child}").exists()
