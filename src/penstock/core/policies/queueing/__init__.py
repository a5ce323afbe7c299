"""Queueing theory: as few replicas as keep the response time within an objective."""

from penstock.core.policies.queueing.policy import POLICY

__all__ = ["POLICY"]
