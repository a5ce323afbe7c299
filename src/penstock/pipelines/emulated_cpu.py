"""Work that is waited for instead of done: the core stays free, but it counts as its work.

Unlike the time of somebody who waits for a server, this time stands for computing: policies that
look at processors must see it.
"""

import time

from penstock.pipelines.cpu_clock import add_clock

_waited_s = 0.0


def work_for(seconds: float) -> None:
    """Wait for so long, as if this process had computed."""
    global _waited_s
    time.sleep(seconds)
    _waited_s += seconds


add_clock(lambda: _waited_s)
