"""The registry of policies: built-in ones, those of installed packages, and single files.

Every module or folder in `core/policies/` with a `POLICY` is built in. Packages offer theirs
through the entry point group `penstock.policies`; a file is given by its path.
"""

import pkgutil
from functools import cache
from importlib import import_module, metadata
from pathlib import Path

from penstock.control.policy_file import load_policy_file
from penstock.core import policies as ours
from penstock.core.policy import Policy
from penstock.errors import InputError, nearest

GROUP = "penstock.policies"
#: The policy of a run on Spark, and of a simulated run, that names none.
DEFAULT_POLICY, DEFAULT_SIMULATED_POLICY = "queueing", "ds2"


def builtin_policies() -> dict[str, Policy]:
    """Return the policies in `core/policies/` by name."""
    modules = [
        import_module(f"{ours.__name__}.{info.name}")
        for info in pkgutil.iter_modules(ours.__path__)
    ]
    builtin = [module.POLICY for module in modules if hasattr(module, "POLICY")]
    return {policy.name: policy for policy in sorted(builtin, key=lambda policy: policy.name)}


@cache
def alone_policy() -> str:
    """Return the name of the policy by which replicas decide in a run without a controller."""
    return next(policy.name for policy in builtin_policies().values() if policy.decides_alone)


@cache
def host_policy() -> str:
    """Return the name of the policy of pipelines with hosts."""
    return next(policy.name for policy in builtin_policies().values() if policy.reads == "hosts")


def installed_policies() -> dict[str, Policy]:
    """Return the policies of other packages by name."""
    installed = {}
    for entry in metadata.entry_points(group=GROUP):
        try:
            offered = entry.load()
        except Exception as error:
            problem = f"cannot be loaded: {type(error).__name__}: {error}"
            raise InputError(f"entry point {entry.name!r}", problem) from error
        policy = getattr(offered, "POLICY", offered)
        if not isinstance(policy, Policy):
            raise InputError(f"entry point {entry.name!r}", "is not a Policy")
        installed[policy.name] = policy
    return installed


@cache
def policies() -> dict[str, Policy]:
    """Return all policies by name."""
    return builtin_policies() | installed_policies()


def find_policy(name: str) -> Policy:
    """Return the policy of that name, or the one in that file."""
    if name.endswith(".py") or "/" in name:
        return load_policy_file(Path(name))
    known = policies()
    if name not in known:
        hint = nearest(name, known) + "; a file is given as ./my_policy.py"
        raise InputError("policy", f"unknown policy {name!r}", hint)
    return known[name]
