"""Judges what a machine has: each finding is ok, a warning or a problem, with advice."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.extras import install_command
from penstock.runs.machine_facts import MachineFacts
from penstock.runs.package_versions import PackageVersion

MIN_PYTHON = (3, 11)
MIN_JAVA = 17
_GB = 10**9
#: The JVM of a run may take 2 GB (`spark.driver.memory`); Python workers come on top.
_ROOMY_MEMORY_BYTES, _MIN_MEMORY_BYTES = 3 * _GB, 1 * _GB
#: A run keeps up to 80 MB of journal and 40 MB of logs beside its rows.
_ROOMY_DISK_BYTES, _MIN_DISK_BYTES = 2 * _GB, 200 * 10**6
#: A slow name server delays every start of Spark.
_MAX_LOOKUP_S = 3.0
_JAVA_ADVICE = (
    "install a JDK (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME to its directory"
)


class Severity(StrEnum):
    """How bad a finding is; runs on Spark fail with a problem."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check."""

    check: str
    severity: Severity
    message: str
    #: What to do about it; "" if nothing is to be done.
    advice: str = ""


def check_machine(facts: MachineFacts) -> list[Finding]:
    """Judge everything that was found."""
    return [
        _check_python(facts),
        _check_java(facts),
        *_check_packages(facts.packages),
        *_check_extras(facts.packages),
        _check_cores(facts),
        _check_memory(facts),
        _check_disk(facts),
        _check_write(facts),
        _check_port(facts),
        _check_host(facts),
    ]


def has_problem(findings: Sequence[Finding]) -> bool:
    """Whether a run on Spark would fail."""
    return any(finding.severity is Severity.PROBLEM for finding in findings)


def java_major(version: str) -> int | None:
    """Return the major version of Java.

    >>> java_major("17.0.15"), java_major("1.8.0_402"), java_major("21-ea")
    (17, 8, 21)
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def _check_python(facts: MachineFacts) -> Finding:
    version = ".".join(map(str, facts.python_version))
    if facts.python_version[:2] < MIN_PYTHON:
        need = ".".join(map(str, MIN_PYTHON))
        advice = f"make an environment with Python {need} or newer"
        return Finding("python", Severity.PROBLEM, f"Python {version} is older than {need}", advice)
    return Finding("python", Severity.OK, f"Python {version} at {facts.python_path}")


def _check_java(facts: MachineFacts) -> Finding:
    if facts.java_path is None:
        where = f"JAVA_HOME is {facts.java_home!r}, which has no bin/java"
        message = where if facts.java_home else "there is no java on the PATH"
        return Finding("java", Severity.PROBLEM, message, _JAVA_ADVICE)
    source = "from JAVA_HOME" if facts.java_home else "from the PATH"
    place = f"{facts.java_path}, {source}"
    major = java_major(facts.java_version) if facts.java_version else None
    if major is None:
        message = f"the version of {place}, cannot be read"
        return Finding("java", Severity.PROBLEM, message, _JAVA_ADVICE)
    if major < MIN_JAVA:
        message = f"Java {facts.java_version} is older than {MIN_JAVA}: {place}"
        return Finding("java", Severity.PROBLEM, message, _JAVA_ADVICE)
    return Finding("java", Severity.OK, f"Java {facts.java_version} at {place}")


def _check_packages(packages: Sequence[PackageVersion]) -> Iterator[Finding]:
    """Judge the packages that every run needs."""
    if not packages:
        advice = "install Penstock with pip instead of adding its source to PYTHONPATH"
        message = "unknown, because Penstock is not installed"
        yield Finding("packages", Severity.WARNING, message, advice)
    for package in packages:
        if package.extra:
            continue
        advice = f"pip install '{package.name}{package.supported}'"
        if package.installed is None:
            yield Finding(package.name, Severity.PROBLEM, "is not installed", advice)
        elif not package.is_supported:
            message = f"{package.installed} is not supported ({package.supported})"
            yield Finding(package.name, Severity.PROBLEM, message, advice)
        else:
            message = f"{package.installed} ({package.supported})"
            yield Finding(package.name, Severity.OK, message)


def _check_extras(packages: Sequence[PackageVersion]) -> Iterator[Finding]:
    """Judge the packages of extras; it is fine not to have them."""
    for package in packages:
        if not package.extra:
            continue
        check, advice = f"extra {package.extra}", install_command(package.extra)
        if package.installed is None:
            message = f"{package.name} is not installed; optional: {advice}"
            yield Finding(check, Severity.OK, message)
        elif not package.is_supported:
            message = f"{package.name} {package.installed} is not supported ({package.supported})"
            yield Finding(check, Severity.WARNING, message, advice)
        else:
            yield Finding(check, Severity.OK, f"{package.name} {package.installed}")


def _check_cores(facts: MachineFacts) -> Finding:
    if facts.cores < 2:
        advice = "expect slow starts; use two cores or more to measure latencies"
        return Finding("cores", Severity.WARNING, "1 core for Spark and all replicas", advice)
    return Finding("cores", Severity.OK, f"{facts.cores} cores")


def _check_memory(facts: MachineFacts) -> Finding:
    if facts.available_memory_bytes is None:
        return Finding("memory", Severity.OK, "unknown on this system")
    message = f"{_size(facts.available_memory_bytes)} available"
    if facts.memory_bytes is not None:
        message += f" of {_size(facts.memory_bytes)}"
    need = f"free {_size(_ROOMY_MEMORY_BYTES)} for the JVM and the Python workers of a run"
    severity = _judge_room(facts.available_memory_bytes, _ROOMY_MEMORY_BYTES, _MIN_MEMORY_BYTES)
    return Finding("memory", severity, message, "" if severity is Severity.OK else need)


def _check_disk(facts: MachineFacts) -> Finding:
    if facts.free_disk_bytes is None:
        return Finding("disk", Severity.WARNING, f"free space in {facts.directory} is unknown")
    message = f"{_size(facts.free_disk_bytes)} free in {facts.directory}"
    severity = _judge_room(facts.free_disk_bytes, _ROOMY_DISK_BYTES, _MIN_DISK_BYTES)
    advice = "make space, or choose another disk for runs with --out DIR"
    return Finding("disk", severity, message, "" if severity is Severity.OK else advice)


def _check_write(facts: MachineFacts) -> Finding:
    if facts.write_error:
        message = f"{facts.directory}: {facts.write_error}"
        advice = "choose a local directory that you may write to for runs, with --out DIR"
        return Finding("write access", Severity.PROBLEM, message, advice)
    return Finding("write access", Severity.OK, "files can be written, linked and locked")


def _check_port(facts: MachineFacts) -> Finding:
    if facts.port_error:
        message = f"no port of 127.0.0.1 can be opened: {facts.port_error}"
        advice = "allow local connections in the sandbox or container; Spark needs them"
        return Finding("loopback", Severity.PROBLEM, message, advice)
    return Finding("loopback", Severity.OK, "a port of 127.0.0.1 can be opened")


def _check_host(facts: MachineFacts) -> Finding:
    advice = f"add the line '127.0.0.1 {facts.host_name}' to /etc/hosts"
    if facts.host_error:
        message = f"{facts.host_name!r} does not resolve: {facts.host_error}"
        return Finding("host name", Severity.WARNING, message, advice)
    if facts.host_lookup_s > _MAX_LOOKUP_S:
        message = f"{facts.host_name!r} takes {facts.host_lookup_s:.0f} s to resolve"
        return Finding("host name", Severity.WARNING, message, advice)
    return Finding("host name", Severity.OK, f"{facts.host_name!r} resolves")


def _judge_room(size: int, roomy: int, least: int) -> Severity:
    if size < least:
        return Severity.PROBLEM
    return Severity.WARNING if size < roomy else Severity.OK


def _size(size: int) -> str:
    return f"{size / _GB:.1f} GB"
