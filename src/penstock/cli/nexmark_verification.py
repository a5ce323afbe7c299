"""`penstock nexmark verify`: a session for it, and how what came out is shown."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.core.numbers import pretty, table_number
from penstock.core.progress import WorkProgress
from penstock.engines.spark.cluster.masters import check_java
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.lab.nexmark_verify import CHANGES, Verified, VerifySpec, verify
from penstock.nexmark.truths import check_database
from penstock.reports.tables import Table, as_text
from penstock.runs.run_lock import hush_logging, silence_accumulator_server

#: Tasks that run at once, and replicas that are started beforehand.
_SLOTS, _WARM = 20, 8
#: Rows shown of each difference.
_SHOWN = 5
#: Changes of replicas that every operator must have had.
_ENOUGH = CHANGES - 1


def run(spec: VerifySpec, show: Callable[[WorkProgress], None]) -> Verified:
    """Verify in a session and a directory of its own, which goes afterwards."""
    spec.check()
    check_java()
    check_database()

    def told(done: float) -> None:
        show(WorkProgress(total=spec.events, kept=0, done=int(done * spec.events)))

    told(0.0)
    spec.pipeline().check()
    home = Path(tempfile.mkdtemp(prefix="penstock-verify-"))
    try:
        hush_logging()
        spark = start_session(f"verify {spec.query}", _SLOTS, home / "spark.log")
        silence_accumulator_server(spark)
        try:
            start_workers(spark, _WARM, home / "warm")
            return verify(spec, spark, home / "run", told)
        finally:
            end_session(spark)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def as_json(spec: VerifySpec, seen: Verified) -> dict[str, Any]:
    """What came out, for machines."""
    return {
        "query": spec.query,
        "variant": spec.chosen,
        "events": spec.events,
        "rate": spec.setting.clock.rate,
        "rows": seen.rows,
        "missing": len(seen.difference.missing),
        "extra": len(seen.difference.extra),
        "late": seen.late,
        "changes": seen.changes,
        "seconds": seen.seconds,
        "equal": seen.is_right,
    }


def as_page(spec: VerifySpec, seen: Verified) -> str:
    """What came out, for people: one line, and the first rows that differ."""
    figures = {
        "query": spec.query,
        "variant": spec.chosen,
        "events": pretty(spec.events),
        "rows": pretty(seen.rows),
        "missing": pretty(len(seen.difference.missing)),
        "extra": pretty(len(seen.difference.extra)),
        "late": pretty(seen.late),
        "changes": pretty(min(seen.changes.values())) if spec.rescale else "-",
        "seconds": table_number(seen.seconds),
        "verdict": "equal" if seen.is_right else "NOT EQUAL",
    }
    lines = [as_text(Table(columns=tuple(figures), rows=(tuple(figures.values()),)))]
    for what, rows in (("missing", seen.difference.missing), ("too many", seen.difference.extra)):
        lines += [f"  {what}: {row}" for row in rows.slice(0, _SHOWN).to_pylist()]
    lines += [
        f"  too few changes: {name} changed its replicas {count} times, {_ENOUGH} were wanted;"
        " what has no rows has no batches, so give more --events"
        for name, count in seen.changes.items()
        if spec.rescale and count < _ENOUGH
    ]
    return "\n".join(lines)


def is_enough(spec: VerifySpec, seen: Verified) -> bool:
    """Whether it is right, and every operator was rescaled as it should be."""
    return seen.is_right and (not spec.rescale or min(seen.changes.values()) >= _ENOUGH)
