"""The enforcer of E-StreamHub: hosts and slices under a global and a local rule."""

from penstock.core.policies.enforcer.policy import POLICY

__all__ = ["POLICY"]
