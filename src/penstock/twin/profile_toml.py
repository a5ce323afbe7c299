"""Writes a calibration as a profile in TOML; every number has its interval and source."""

import json
from collections.abc import Mapping
from typing import Any

from penstock.twin.calibration import Calibration, Estimate


def to_toml(calibration: Calibration) -> str:
    """Return a profile that `penstock simulate --engine ./FILE` reads."""
    queries = list(
        dict.fromkeys(e.path[1] for e in calibration.estimates if e.path[0] == "pipelines")
    )
    lines = [
        "# Made by penstock calibrate from " + ", ".join(calibration.runs) + ".",
        "# Each number: its 95 % interval, and what it was fitted from. The costs of operators",
        "# are valid only for the --set values of these runs.",
        f"summary = {json.dumps('Spark as measured with ' + ', '.join(queries))}",
        'resolution = "batches"',
        f"runs = {_value(list(calibration.runs))}",
    ]
    tables: dict[tuple[str, ...], list[Estimate]] = {}
    for estimate in calibration.estimates:
        tables.setdefault(estimate.path[:-1], []).append(estimate)
    for path, estimates in tables.items():
        lines += ["", f"[{'.'.join(map(_key, path))}]"]
        lines += [_line(estimate) for estimate in estimates]
    return "\n".join(lines) + "\n"


def to_json(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration as plain dictionaries."""
    return {
        "runs": list(calibration.runs),
        "parameters": [
            {
                "path": ".".join(e.path),
                "label": e.label,
                "value": e.value,
                "low": e.fit.low if e.is_fitted and e.fit else None,
                "high": e.fit.high if e.is_fitted and e.fit else None,
                "fitted": e.is_fitted,
                "source": e.source,
            }
            for e in calibration.estimates
        ],
    }


def _line(estimate: Estimate) -> str:
    text = f"{_key(estimate.path[-1])} = {_value(estimate.value)}"
    return f"{text:<28}  # {_comment(estimate)}"


def _comment(estimate: Estimate) -> str:
    if estimate.fit is None or not estimate.is_fitted:
        return estimate.source
    low, high = estimate.fit.low, estimate.fit.high
    return f"{low:.4g} to {high:.4g}; {estimate.source}"


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    if isinstance(value, float):
        text = f"{value:.6g}"
        return text if any(sign in text for sign in ".einf") else f"{text}.0"
    return json.dumps(value)
