"""The demo of publish/subscribe on Spark: hosts follow the load, and no event is lost by it."""

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_hosts_grow_and_shrink_with_the_ticks() -> None:
    command = [sys.executable, "-m", "penstock", "pubsub", "demo", "--json", "--seconds", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    hosts = figures["hosts"]
    assert hosts[0] == 1, done.stderr
    assert max(hosts) >= 2, done.stderr
    assert hosts[-1] < max(hosts), done.stderr
    assert set(figures["missing"].values()) == set(figures["extra"].values()) == {0}
