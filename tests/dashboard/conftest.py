"""Fixtures of the dashboard's tests."""

from tests.dashboard.pages import two_runs

__all__ = ["two_runs"]
