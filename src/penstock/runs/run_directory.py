"""The directory of a run: spec, journal and result. Everything that shows a run reads it.

run.toml        the spec, and the versions that ran it; written first
journal.jsonl   one line a tick (`runs/journal.py`)
control.jsonl   what people asked of the running loop (`runs/control_file.py`)
result.json     the figures; written last, so a run without it did not finish
lock            held by the process that runs it, if it can be resumed
"""

import json
import platform
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from penstock import __version__
from penstock.core.frozen_dict import thaw
from penstock.errors import InputError
from penstock.files.text import explain_os_error, is_directory, is_file, read_text, read_toml
from penstock.runs.journal import Journal, JournalWriter, read_journal
from penstock.runs.journal_header import JournalHeader
from penstock.runs.journal_parts import DEFAULT_LIMITS, Limits
from penstock.runs.result import RunResult
from penstock.runs.snapshot_lines import parse_json
from penstock.runs.spec_fields import with_current_names

VERSION = 1
SPEC_FILE, JOURNAL, RESULT, LOCK = "run.toml", "journal.jsonl", "result.json", "lock"
_NAME_LENGTH = 80
#: The field of a spec that may change between two starts.
CHAIN = "chain"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """A run that was read."""

    directory: Path
    #: What was asked, as its spec was written, and the versions of "penstock" and "python".
    spec: Mapping[str, Any]
    versions: Mapping[str, str]
    journal: Journal
    #: None if the run has not finished.
    result: RunResult | None


def default_place(parts: tuple[str, ...], now: str, root: Path) -> Path:
    """Return `root/<parts>-<now>`, with a number behind it if that is taken.

    >>> default_place(("./q1.toml", "cosine * 2", "mine"), "20260131-120000", Path("runs")).name
    'q1-cosine-2-mine-20260131-120000'
    """
    plain = (part.rpartition("/")[2].removesuffix(".toml").removesuffix(".py") for part in parts)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(plain)).strip("-.")[:_NAME_LENGTH]
    first = place = root / f"{name}-{now}"
    number = 1
    while place.exists():
        number += 1
        place = first.with_name(f"{first.name}-{number}")
    return place


def begin_run(
    directory: Path,
    spec: Mapping[str, Any],
    header: JournalHeader,
    limits: Limits = DEFAULT_LIMITS,
) -> JournalWriter:
    """Make the directory, write what was asked, and open the journal."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        taken = {file.name for file in directory.iterdir()} - {LOCK, f"{SPEC_FILE}.tmp"}
    except (OSError, ValueError) as error:
        problem = f"cannot be a run directory: {explain_os_error(error)}"
        raise InputError("out", problem, where=str(directory)) from None
    if taken:
        hint = "choose another with --out DIR, or remove it first"
        raise InputError("out", "this directory is not empty", hint, str(directory))
    _write(directory / SPEC_FILE, spec_toml(spec))
    return JournalWriter(directory / JOURNAL, header, limits=limits)


def open_run(
    directory: Path,
    spec: Mapping[str, Any],
    header: JournalHeader,
    *,
    resume: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> JournalWriter:
    """Begin a run, or continue the one in the directory if it has the same spec.

    A run that was killed at any moment can be resumed. The journal keeps its first header.
    """
    if not resume or not (directory / SPEC_FILE).is_file():
        return begin_run(directory, spec, header, limits)
    old = _read_checked(directory / SPEC_FILE)["spec"]
    new = tomllib.loads(spec_toml(spec))["spec"]
    difference = _first_difference({**old, CHAIN: None}, {**new, CHAIN: None})
    if difference is not None:
        field, before, now = difference
        hint = f"ask for the same as its {SPEC_FILE}, or choose another directory with --out DIR"
        problem = f"the run in this directory has {before}, now {now} is asked for"
        raise InputError(field, problem, hint, str(directory))
    if old.get(CHAIN) != new.get(CHAIN):
        _write(directory / SPEC_FILE, spec_toml(spec))
    journal = JournalWriter.resume(directory / JOURNAL, header, limits)
    (directory / RESULT).unlink(missing_ok=True)  # it has not finished after all
    return journal


def finish_run(directory: Path, result: RunResult) -> None:
    """Write the result atomically."""
    _write(directory / RESULT, json.dumps(result.to_json(), indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    written = path.with_name(f"{path.name}.tmp")
    written.write_text(text, encoding="utf-8")
    written.replace(path)


def spec_toml(spec: Mapping[str, Any]) -> str:
    """Return the text of `run.toml`: the spec, and the versions that run it."""
    return tomlkit.dumps(
        {
            "version": VERSION,
            "penstock": __version__,
            "python": platform.python_version(),
            "spec": thaw(spec),
        }
    )


def _first_difference(
    old: Mapping[str, Any], new: Mapping[str, Any], under: str = ""
) -> tuple[str, str, str] | None:
    """Where two specs part: the field, and what stands there in each.

    >>> _first_difference({"policy": "mine", "guards": {"budget": 8}}, {"policy": "mine"})
    ('guards.budget', '8', 'nothing')
    """
    for key in {**old, **new}:
        before, now = old.get(key, {}), new.get(key, {})
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            inner = _first_difference(before, now, f"{under}{key}.")
            if inner is not None:
                return inner
        elif before != now:
            return f"{under}{key}", _shown(before), _shown(now)
    return None


def _shown(value: Any) -> str:
    return "nothing" if value == {} else repr(value)


def read_run(directory: Path) -> RunDirectory:
    """Read a run directory; `InputError` names what is missing or broken."""
    if not is_file(directory / SPEC_FILE):
        is_there = is_directory(directory)
        problem = "is not a run directory" if is_there else "there is no such directory"
        hint = f"a run is a directory with {SPEC_FILE} and {JOURNAL}, as penstock run makes it"
        raise InputError("", problem, hint, str(directory))
    spec, versions = read_spec_file(directory / SPEC_FILE)
    return RunDirectory(
        directory=directory,
        spec=spec,
        versions=versions,
        journal=read_journal(directory / JOURNAL),
        result=read_result(directory / RESULT),
    )


def read_spec_file(path: Path) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Read `run.toml`: the spec, and the versions that ran it."""
    content = _read_checked(path)
    return content["spec"], {key: str(content.get(key, "")) for key in ("penstock", "python")}


def _read_checked(path: Path) -> dict[str, Any]:
    content = read_toml(path)
    if content.get("version") != VERSION:
        problem = f"cannot read version {content.get('version')}, only {VERSION}"
        raise InputError("version", problem, where=str(path))
    if not isinstance(content.get("spec"), Mapping):
        raise InputError("spec", "missing", where=str(path))
    return {**content, "spec": with_current_names(content["spec"])}


def read_result(path: Path) -> RunResult | None:
    """Read a result; None if there is none, `InputError` if it is damaged."""
    if not is_file(path):
        return None
    try:
        return RunResult.from_json(parse_json(read_text(path)))
    except InputError as error:
        raise error.at(str(path)) from None


def has_finished(run: Path) -> bool:
    """Whether a run has a result that says that it finished."""
    result = read_result(run / RESULT)
    return result is not None and result.spark is not None and result.spark.ended == "finished"
