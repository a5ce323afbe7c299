"""Settings shared by all tests."""

from hypothesis import HealthCheck, settings

# the same examples on every machine, and none kept on disk
settings.register_profile(
    "penstock",
    database=None,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("penstock")
