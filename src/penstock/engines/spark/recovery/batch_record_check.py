"""Checks all batch records of a run for damage."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from penstock.engines.microbatch.batch_record import read_record


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDamage:
    """A record that is missing or damaged."""

    #: Its path in the run directory.
    file: str
    problem: str


def check_records(run: Path) -> dict[str, list[RecordDamage]]:
    """Return the damage by folder of records; folders without damage are left out."""
    folders = sorted(path for path in run.glob("batches/*") if path.is_dir())
    damages = {f"batches/{folder.name}": list(_check_folder(folder)) for folder in folders}
    return {name: damage for name, damage in damages.items() if damage}


def _check_folder(folder: Path) -> Iterator[RecordDamage]:
    paths = sorted(folder.glob("[0-9]*.json"))
    for path in paths:
        if problem := _find_problem(path):
            yield RecordDamage(file=f"batches/{folder.name}/{path.name}", problem=problem)
    for before, after in pairwise(int(path.stem) for path in paths):
        if after != before + 1:
            name = f"batches/{folder.name}/{before + 1:020d}.json"
            yield RecordDamage(file=name, problem=f"missing: the next one is of batch {after}")


def _find_problem(path: Path) -> str:
    try:
        record = read_record(path.read_bytes())
    except FileNotFoundError:  # an old one, removed meanwhile
        return ""
    except ValueError as error:
        return str(error)
    number = int(path.stem)
    return "" if record.batch == number else f"holds the record of batch {record.batch}"
