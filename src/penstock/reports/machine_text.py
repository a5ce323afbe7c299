"""The findings of `penstock doctor` as text and JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from penstock.reports.text_layout import hang
from penstock.runs.machine_check import Finding, Severity

_SIGNS = {Severity.OK: "ok", Severity.WARNING: "WARNING", Severity.PROBLEM: "PROBLEM"}
#: Columns before the names of checks, and before their messages.
_NAME, _MESSAGE = 9, 24


def machine_text(findings: Sequence[Finding]) -> str:
    """Write one line per finding, what to do about it below, and a summary."""
    lines = []
    for finding in findings:
        label = f"{_SIGNS[finding.severity]:<{_NAME}}{finding.check}"
        lines.append(hang(label, finding.message, _MESSAGE))
        if finding.advice:
            lines.append(hang("", f"-> {finding.advice}", _MESSAGE))
    return "\n".join([*lines, "", _summary(findings)])


def machine_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as a JSON object; `result` is the worst of them."""
    severities = {finding.severity for finding in findings}
    worst = next(each for each in reversed(Severity) if each in severities or each is Severity.OK)
    return {
        "result": worst.value,
        "findings": [
            {
                "check": finding.check,
                "result": finding.severity.value,
                "message": finding.message,
                "advice": finding.advice,
            }
            for finding in findings
        ],
    }


def _summary(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    bad, doubtful = counts[Severity.PROBLEM], counts[Severity.WARNING]
    if not bad and not doubtful:
        return "Everything that a run on Spark needs is there."
    parts = [
        f"{count} {name}{'s' if count > 1 else ''}"
        for count, name in ((bad, "problem"), (doubtful, "warning"))
        if count
    ]
    ending = "a run on Spark would fail" if bad else "runs on Spark work"
    return f"{' and '.join(parts)}: {ending}."
