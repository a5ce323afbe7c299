"""Findings on machines that were made up, and on this one."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.reports.machine_text import machine_json, machine_text
from penstock.runs.machine_check import Finding, Severity, check_machine, has_problem
from penstock.runs.machine_facts import MachineFacts, gather_facts
from penstock.runs.package_versions import PackageVersion

PYSPARK = PackageVersion(name="pyspark", supported=">=4.2,<5", installed="4.3.0")
SKLEARN = PackageVersion(name="scikit-learn", extra="demo", supported=">=1.6,<2", installed="1.9")
GOOD = MachineFacts(
    python_version=(3, 11, 7),
    python_path="/venv/bin/python",
    java_home="",
    java_path="/usr/bin/java",
    java_version="17.0.15",
    packages=(PYSPARK, SKLEARN),
    memory_bytes=16 * 10**9,
    available_memory_bytes=8 * 10**9,
    cores=4,
    directory="/data",
    free_disk_bytes=50 * 10**9,
    host_name="box",
)


def finding(check: str, **facts: object) -> Finding:
    """The finding of one check on a machine that is good but for some facts."""
    findings = check_machine(replace(GOOD, **facts))  # type: ignore[arg-type]
    others = [each.severity for each in findings if each.check != check]
    assert set(others) == {Severity.OK}, "other checks must not look at these facts"
    return next(each for each in findings if each.check == check)


def test_a_good_machine_has_nothing_but_ok() -> None:
    findings = check_machine(GOOD)
    assert {each.severity for each in findings} == {Severity.OK}
    assert [each.advice for each in findings if each.advice] == []
    assert not has_problem(findings)


@pytest.mark.parametrize(
    ("facts", "message", "advice"),
    [
        pytest.param({"java_path": None}, "no java on the PATH", "install a JDK", id="none"),
        pytest.param(
            {"java_path": None, "java_home": "/opt/x"},
            "'/opt/x', which has no",
            "",
            id="wrong home",
        ),
        pytest.param({"java_version": "11.0.2"}, "Java 11.0.2 is older than 17", "", id="11"),
        pytest.param({"java_version": "1.8.0_402"}, "1.8.0_402 is older", "", id="8"),
        pytest.param({"java_version": None}, "cannot be read", "install a JDK", id="silent"),
    ],
)
def test_java_must_be_there_and_new(facts: dict[str, object], message: str, advice: str) -> None:
    java = finding("java", **facts)
    assert java.severity is Severity.PROBLEM
    assert message in java.message and advice in java.advice


def test_java_says_where_it_comes_from() -> None:
    assert finding("java").message == "Java 17.0.15 at /usr/bin/java, from the PATH"
    home = finding("java", java_home="/jdk", java_path="/jdk/bin/java", java_version="21")
    assert home.message == "Java 21 at /jdk/bin/java, from JAVA_HOME"


def test_an_old_python_is_a_problem() -> None:
    assert finding("python", python_version=(3, 10, 4)).severity is Severity.PROBLEM


@pytest.mark.parametrize(
    ("installed", "severity"),
    [(None, "problem"), ("4.1.2", "problem"), ("4.2.0", "ok"), ("5.0.0", "problem")],
)
def test_pyspark_must_be_of_a_supported_version(installed: str | None, severity: str) -> None:
    packages = (replace(PYSPARK, installed=installed), SKLEARN)
    found = finding("pyspark", packages=packages)
    assert found.severity == severity
    if severity == "problem":
        assert found.advice == "pip install 'pyspark>=4.2,<5'"


@pytest.mark.parametrize(
    ("installed", "severity"), [(None, "ok"), ("1.9", "ok"), ("2.1", "warning")]
)
def test_an_extra_may_be_missing_but_not_of_another_version(
    installed: str | None, severity: str
) -> None:
    packages = (PYSPARK, replace(SKLEARN, installed=installed))
    found = finding("extra demo", packages=packages)
    assert found.severity == severity
    if installed != "1.9":
        assert (
            "pip install '.[demo]' in a clone, or 'WHEEL[demo]'"
            in f"{found.message} {found.advice}"
        )


def test_a_penstock_that_is_not_installed_is_a_warning() -> None:
    assert finding("packages", packages=()).severity is Severity.WARNING


@pytest.mark.parametrize(
    ("check", "fact", "size", "severity"),
    [
        ("memory", "available_memory_bytes", 3 * 10**9, "ok"),
        ("memory", "available_memory_bytes", 3 * 10**9 - 1, "warning"),
        ("memory", "available_memory_bytes", 10**9 - 1, "problem"),
        ("memory", "available_memory_bytes", None, "ok"),
        ("disk", "free_disk_bytes", 2 * 10**9, "ok"),
        ("disk", "free_disk_bytes", 10**9, "warning"),
        ("disk", "free_disk_bytes", 10**8, "problem"),
        ("disk", "free_disk_bytes", None, "warning"),
        ("cores", "cores", 2, "ok"),
        ("cores", "cores", 1, "warning"),
    ],
)
def test_room_is_judged_by_size(check: str, fact: str, size: int | None, severity: str) -> None:
    assert finding(check, **{fact: size}).severity == severity


@pytest.mark.parametrize(
    ("check", "facts", "severity", "message"),
    [
        (
            "write access",
            {"write_error": "cannot lock a file: no"},
            "problem",
            "/data: cannot lock",
        ),
        ("loopback", {"port_error": "Operation not permitted"}, "problem", "not permitted"),
        ("host name", {"host_error": "Name or service not known"}, "warning", "'box' does not"),
        ("host name", {"host_lookup_s": 10.0}, "warning", "takes 10 s"),
    ],
)
def test_errors_are_passed_on_with_advice(
    check: str, facts: dict[str, object], severity: str, message: str
) -> None:
    found = finding(check, **facts)
    assert found.severity == severity and message in found.message and found.advice


def test_text_and_json_say_the_same() -> None:
    findings = check_machine(replace(GOOD, java_path=None, cores=1))
    text = machine_text(findings)
    assert "PROBLEM  java           there is no java on the PATH\n" in text
    assert "-> install a JDK" in text
    assert text.endswith("\n1 problem and 1 warning: a run on Spark would fail.")
    data = machine_json(findings)
    assert data["result"] == "problem" and has_problem(findings)
    assert [each["check"] for each in data["findings"]] == [each.check for each in findings]
    assert machine_json(check_machine(replace(GOOD, cores=1)))["result"] == "warning"
    assert machine_json(check_machine(GOOD))["result"] == "ok"


def test_java_of_the_path_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.write_text(
        '#!/bin/sh\necho "Picked up: -Xmx1g" >&2\necho \'openjdk version "11.0.2"\' >&2\n'
    )
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = gather_facts(tmp_path)
    assert (facts.java_path, facts.java_version) == (str(java), "11.0.2")
    assert facts.write_error == "" and facts.port_error == ""
    assert [path.name for path in tmp_path.iterdir()] == ["java"]


def test_a_directory_that_is_not_there_cannot_be_written(tmp_path: Path) -> None:
    facts = gather_facts(tmp_path / "gone")
    assert facts.write_error == "cannot create a file: No such file or directory"
    assert facts.free_disk_bytes is None
