"""Writes a calibration as a profile in TOML; every number has its interval and source."""

from collections.abc import Mapping
from typing import Any

import tomlkit

from penstock.twin.calibration import Calibration, Estimate

#: Column at which comments start.
_COMMENT_COLUMN = 30


def to_toml(calibration: Calibration) -> str:
    """Return a profile that `penstock simulate --engine ./FILE` reads."""
    queries = dict.fromkeys(e.path[1] for e in calibration.estimates if e.path[0] == "pipelines")
    profile = tomlkit.document()
    for line in (
        "Made by penstock calibrate from " + ", ".join(calibration.runs) + ".",
        "Each number: its 95 % interval, and what it was fitted from. The costs of operators",
        "are valid only for the --set values of these runs.",
    ):
        profile.add(tomlkit.comment(line))
    profile["summary"] = f"Spark as measured with {', '.join(queries)}"
    profile["resolution"] = "batches"
    profile["runs"] = list(calibration.runs)
    for estimate in calibration.estimates:
        _add(profile, estimate)
    return tomlkit.dumps(profile)


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


def _add(profile: tomlkit.TOMLDocument, estimate: Estimate) -> None:
    """Add a number to its table, with a comment behind it."""
    *tables, key = estimate.path
    table: Any = profile
    for depth, name in enumerate(tables, start=1):
        if name not in table:
            # a table without values gets no header
            table.add(name, tomlkit.table(is_super_table=depth < len(tables)))
        table = table[name]
    value = tomlkit.item(_rounded(estimate.value))
    text = f"{tomlkit.key(key).as_string()} = {value.as_string()}"
    if comment := _comment(estimate):
        value.comment(comment)
        value.trivia.comment_ws = " " * max(2, _COMMENT_COLUMN - len(text))
    table.add(key, value)


def _comment(estimate: Estimate) -> str:
    if estimate.fit is None or not estimate.is_fitted:
        return estimate.source
    low, high = estimate.fit.low, estimate.fit.high
    return f"{low:.4g} to {high:.4g}; {estimate.source}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _rounded(inner) for key, inner in value.items()})
        return table
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
