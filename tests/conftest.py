"""Settings shared by all tests."""

import os

from hypothesis import HealthCheck, settings

# many short JVMs: compiling thoroughly costs them more than it brings
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# the same examples on every machine, and none kept on disk
settings.register_profile(
    "penstock",
    database=None,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("penstock")
