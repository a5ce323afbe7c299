"""A latency objective in, replicas out: the cheapest plan that is expected to keep it."""

from penstock.core.policies.slo.policy import POLICY

__all__ = ["POLICY"]
