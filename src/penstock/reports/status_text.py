"""The status of a run as text and JSON."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from penstock.core.numbers import pretty
from penstock.reports.chain_text import chain_text, describe_slowest
from penstock.reports.progress import duration
from penstock.reports.tables import Table, as_text
from penstock.reports.topic_text import size_text
from penstock.runs.operator_status import OperatorStatus
from penstock.runs.run_status import HEALTHY, RunStatus

_COLUMNS = ("operator", "kind", "replicas", "queue", "oldest", "watermark", "commit", "restarts")


def status_text(status: RunStatus, now: float) -> str:
    """Return the status, 80 columns wide where possible."""
    heads = {name: chain.names[0] for chain in status.chains for name in chain.names[1:]}
    rows = tuple(_row(operator, now, heads.get(operator.name)) for operator in status.operators)
    table = [as_text(Table(columns=_COLUMNS, rows=rows, words=2))] if rows else []
    parts = [
        *([_headline(status)], [*_health(status)], table),
        *([*_chains(status)], [*_hosts(status)], [*_rows(status)], [_disk(status)]),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _headline(status: RunStatus) -> str:
    health = ""
    if status.is_live:
        health = ", healthy" if status.exit_code == HEALTHY else ", NOT healthy"
    parts = [f"{status.pipeline}: {status.state}{health}"]
    if status.pid is not None:
        parts.append(f"process {status.pid}")
    if status.seconds is not None:
        parts.append(f"after {duration(status.seconds)}")
    if status.tick_age_s is not None and status.is_live:
        parts.append(f"last tick {status.tick_age_s:.0f} s ago")
    if status.resumes:
        parts.append(f"resumed {status.resumes} x")
    return ", ".join(parts)


def _health(status: RunStatus) -> Iterator[str]:
    yield from (f"problem: {problem}" for problem in status.problems)
    yield from (f"warning: {warning}" for warning in status.warnings)
    if not status.is_live and status.state != "finished":
        yield f"resume it: penstock run --resume {status.directory}"


def _chains(status: RunStatus) -> Iterator[str]:
    """Yield the members of each chain, and which one takes the most time."""
    for chain in status.chains:
        slowest = describe_slowest(chain.members)
        yield f"chain {chain_text(chain.names, chain.end)}{f': {slowest}' if slowest else ''}"


def _hosts(status: RunStatus) -> Iterator[str]:
    """Yield the slices on each host."""
    if not status.hosts:
        return
    share = status.host_share or 1.0
    yield f"{len(status.hosts)} hosts" + (
        f", each {share:g} of a core (emulated)" if share < 1 else ""
    )
    for host, slices in status.hosts.items():
        operators = Counter(name.rpartition("/")[0] for name in slices)
        yield f"  {host}: " + ", ".join(f"{n} slices of {name}" for name, n in operators.items())


def _row(operator: OperatorStatus, now: float, head: str | None) -> tuple[str, ...]:
    """Return the row of an operator; `head` is the first member of its chain, if it follows one."""
    replicas = replicas_text(operator.wanted, operator.requested, operator.running)
    return (
        operator.name,
        operator.kind,
        f"in {head}" if head is not None else replicas,
        "-" if operator.queue is None else pretty(operator.queue),
        _seconds(operator.oldest_waiting_s),
        "-" if operator.watermark is None else _clock(operator.watermark),
        "-" if operator.last_commit_at is None else _seconds(now - operator.last_commit_at),
        pretty(operator.restarts),
    )


def replicas_text(wanted: int | None, requested: int | None, running: int | None) -> str:
    """Write three numbers of replicas, or one if they are equal.

    >>> replicas_text(2, 2, 2), replicas_text(4, 4, 2), replicas_text(None, 1, None)
    ('2', '4/4/2', '-/1/-')
    """
    numbers = (wanted, requested, running)
    shown = ["-" if number is None else str(number) for number in numbers]
    return shown[0] if len(set(shown)) == 1 else "/".join(shown)


def _rows(status: RunStatus) -> Iterator[str]:
    """Yield rows ingested, late, failed and dropped."""
    for name, ingest in status.ingests.items():
        rate = ingest.rows_per_s
        speed = "" if rate is None else f", {pretty(round(rate, 1))} rows/s"
        backlog = ingest.backlog
        waits = "" if backlog is None else f", {pretty(backlog)} {ingest.unit} wait"
        yield f"{name}: {pretty(ingest.rows)} rows ingested{speed}{waits}"
    for operator in status.operators:
        if operator.late_rows:
            yield f"{operator.name}: {pretty(operator.late_rows)} rows were late"
        if operator.dead_letter_rows:
            topic = status.directory / "topics" / f"{operator.name}-errors"
            rows = pretty(operator.dead_letter_rows)
            yield f"{operator.name}: {rows} dead letters, see penstock topics tail {topic}"
    if status.dropped_rows:
        yield f"{pretty(status.dropped_rows)} rows were dropped (timeout_s, queue_size)"


def _disk(status: RunStatus) -> str:
    used = status.disk_bytes
    parts = ", ".join(f"{name} {size_text(size)}" for name, size in used.items())
    return f"disk {size_text(sum(used.values()))}: {parts}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else duration(max(0.0, value))


def _clock(second: float) -> str:
    return _moment(second).strftime("%m-%d %H:%M:%S")


def _moment(second: float) -> datetime:
    try:
        return datetime.fromtimestamp(second, UTC)
    except (OverflowError, ValueError, OSError):  # event times out of range
        return datetime.max.replace(tzinfo=UTC) if second > 0 else datetime.min.replace(tzinfo=UTC)


def to_json(status: RunStatus, now: float) -> dict[str, Any]:
    """Return the same as JSON; times are ISO 8601 in UTC."""
    data = asdict(status)
    data["directory"] = str(status.directory)
    data["healthy"] = status.exit_code == HEALTHY
    data["at"] = _moment(now).isoformat(timespec="milliseconds")
    if not status.chains:
        del data["chains"]
    data["operators"] = {operator.name: _operator(operator) for operator in status.operators}
    data["ingests"] = {name: ingest._asdict() for name, ingest in status.ingests.items()}
    data["disk_bytes"] = {**status.disk_bytes, "total": sum(status.disk_bytes.values())}
    return data


def _operator(operator: OperatorStatus) -> dict[str, Any]:
    data = {key: value for key, value in asdict(operator).items() if key != "name"}
    for key in ("watermark", "last_commit_at"):
        if data[key] is not None:
            data[key] = _moment(data[key]).isoformat(timespec="milliseconds")
    return data
