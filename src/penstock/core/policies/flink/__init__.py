"""The autoscaler of the Flink Kubernetes operator."""

from penstock.core.policies.flink.policy import POLICY

__all__ = ["POLICY"]
