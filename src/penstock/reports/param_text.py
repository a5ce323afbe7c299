"""Parameters as text: one line each, with default, description, unit and bounds."""

from typing import Any

from penstock.core.params import ParamDescription
from penstock.reports.text_layout import hang


def param_line(param: ParamDescription, width: int) -> str:
    """Return the line of a parameter; its description starts at the column `width`."""
    notes = "; ".join(part for part in (param.spec.unit, param.spec.bounds) if part)
    has_default = param.default is not None and param.default not in ("", {})
    value = f"{param.name}={_default(param.default)}" if has_default else param.name
    return hang(f"  {value}", f"{param.spec.doc}{f' ({notes})' if notes else ''}", width)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)
