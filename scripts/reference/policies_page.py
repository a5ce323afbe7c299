"""The page docs/policies.md: policies, guards and workloads, made from their registries."""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType

from scripts.reference.markdown import code, join_parts, table, wrap

from penstock.control.registry import (
    DEFAULT_POLICY,
    DEFAULT_SIMULATED_POLICY,
    builtin_policies,
)
from penstock.core.guards import Guards
from penstock.core.params import ParamDescription, format_per_operator
from penstock.core.policy import Policy
from penstock.core.reasons import Reason
from penstock.workloads.pattern import Pattern
from penstock.workloads.registry import PATTERNS
from penstock.workloads.spikes import Spikes

INTRODUCTION = f"""
This page is made from the registries by `make docs`. A policy is a pure function from what was
measured to a number of replicas for each operator, with a reason. `--policy NAME` chooses one
(default: `{DEFAULT_POLICY}` on Spark, `{DEFAULT_SIMULATED_POLICY}` in a simulation), `--param
NAME=VALUE` sets a parameter, `--guard NAME=VALUE` a guard. `penstock policies` prints the same on
a terminal. From Python: `policy="ds2", params={{...}}, guards={{...}}`.
"""
GUARDS = """
Guards apply to the proposal of every policy, in the order of this table. A guard that changes a
number leaves its reason beside it. Without a value a guard is off; `--guard NAME=off` switches off
one that a run has by default.
"""
WORKLOADS = """
A workload is the offered load over time. `--workload NAME` chooses one, `--workload-param
NAME=VALUE` sets a parameter; expressions combine them: `"cosine * 0.1 + constant(rate=2e4)"`,
`"constant for 30 then dns"`. `penstock workload NAME` draws one.
"""
SPIKES = "Every workload can have spikes on top:"


def policies_page() -> str:
    """Return the page."""
    policies = builtin_policies().values()
    overview = (
        (f"[`{policy.name}`](#{policy.name})", policy.summary, policy.paper) for policy in policies
    )
    return (
        join_parts(
            [
                "# Policies, guards and workloads",
                wrap(INTRODUCTION),
                table(("policy", "idea", "from"), overview),
                *(_policy_text(policy) for policy in policies),
                "## Guards",
                wrap(GUARDS),
                _params_table(Guards.describe()),
                "## Workloads",
                wrap(WORKLOADS),
                table(
                    ("workload", "load", "from", "parameters"),
                    (_pattern_row(pattern) for pattern in PATTERNS.values()),
                ),
                SPIKES,
                _params_table(Spikes.describe()),
            ]
        )
        + "\n"
    )


def _policy_text(policy: Policy) -> str:
    idea, _, source = (inspect.getmodule(policy.decide).__doc__ or "").strip().partition("\n\n")
    reasons = policy_reasons(policy)
    return join_parts(
        [
            f"## `{policy.name}`",
            wrap(idea),
            wrap(source),
            _params_table(policy.params.describe()),
            f"Measures: {_measures(policy)}.",
            table(("reason", "meaning"), ((f"`{reason}`", reason.sentence) for reason in reasons)),
            code(_example(policy), "sh"),
        ]
    )


def _measures(policy: Policy) -> str:
    if policy.reads == "hosts":
        return "hosts and their slices (`hosts` in a snapshot)"
    return ", ".join(f"`{name}`" for name in policy.measures) or "none"


def _example(policy: Policy) -> str:
    """Return a command that simulates a policy, or asks one that a simulator cannot run."""
    defaults = ((param.name, default_text(param)) for param in policy.params.describe())
    setting = next((f" --param {name}={value}" for name, value in defaults if value), "")
    if policy.reads == "hosts":
        return f"penstock decide --policy {policy.name}{setting} hosts.jsonl"
    return f"penstock simulate --policy {policy.name}{setting} --workload cosine --no-out"


def _params_table(params: Iterable[ParamDescription]) -> str:
    return table(
        ("parameter", "default", "unit", "range", "meaning"),
        (
            (
                f"`{param.name}`",
                f"`{default_text(param)}`" if default_text(param) else "",
                param.spec.unit,
                param.spec.bounds,
                param.spec.doc,
            )
            for param in params
        ),
    )


def default_text(param: ParamDescription) -> str:
    """Return a default as a command takes it; empty if there is none."""
    value = param.default
    if value is None or value in ("", {}):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value) if isinstance(value, str | int) else format_per_operator(value)


def _pattern_row(pattern: Pattern) -> tuple[str, str, str, str]:
    params = (
        f"`{param.name}={default_text(param)}`" if default_text(param) else f"`{param.name}`"
        for param in pattern.params.describe()
    )
    return f"`{pattern.name}`", pattern.summary, pattern.source, ", ".join(params)


def policy_reasons(policy: Policy) -> list[Reason]:
    """Return the reasons that the modules of a policy name, in the order of `Reason`."""
    named: set[str] = set()
    for module in _core_modules(inspect.getmodule(policy.decide), set()):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                named |= {node.attr} if node.value.id == "Reason" else set()
    return [reason for reason in Reason if reason.name in named]


def _core_modules(module: ModuleType | None, known: set[str]) -> Iterator[ModuleType]:
    """Yield a module and the modules of core that it imports."""
    if module is None or module.__name__ in known:
        return
    known.add(module.__name__)
    yield module
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock.core."):
            yield from _core_modules(sys.modules.get(str(node.module)), known)
