"""Policies and guards as text and JSON, with their parameters."""

from typing import Any

from penstock.core.frozen_dict import thaw
from penstock.core.params import Params
from penstock.core.policy import Policy
from penstock.reports.text_layout import hang, param_line

#: Columns before the description of a parameter.
_WIDTH = 33


def policy_text(policy: Policy) -> str:
    """Return the summary, the paper and the parameters of a policy."""
    lines = [hang(policy.name, policy.summary, 15), hang("", policy.paper, 15)]
    return "\n".join([*lines, *params_text(policy.params)])


def params_text(params: type[Params]) -> list[str]:
    """Return one line per parameter."""
    return [param_line(param, _WIDTH) for param in params.describe()]


def policy_json(policy: Policy) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "name": policy.name,
        "summary": policy.summary,
        "paper": policy.paper,
        "reads": policy.reads,
        "reacts": policy.reacts,
        "measures": list(policy.measures),
        "params": params_json(policy.params),
    }


def params_json(params: type[Params]) -> list[dict[str, Any]]:
    """Return parameters as JSON."""
    return [
        {
            "name": param.name,
            "type": param.type,
            "default": thaw(param.default),
            "doc": param.spec.doc,
            "unit": param.spec.unit,
            "bounds": param.spec.bounds,
        }
        for param in params.describe()
    ]
