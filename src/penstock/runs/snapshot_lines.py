"""Lines of JSON to snapshots, each error with its file and line."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from penstock.core.snapshot import Snapshot
from penstock.core.snapshot_json import parse_snapshot
from penstock.errors import InputError


def read_snapshots(lines: Iterable[str], where: str) -> Iterator[tuple[str, Snapshot]]:
    """Yield (place, snapshot) for each line that is not blank."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{where}:{number}"
        try:
            yield place, parse_snapshot(parse_json(line))
        except InputError as error:
            raise error.at(place) from None


def parse_json(text: str) -> Any:
    """Parse strict JSON: no NaN, no name twice in one object."""
    try:
        return json.loads(text, parse_constant=_no_constants, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 15) : error.pos + 15].strip()
        problem = f"not JSON: {error.msg} at column {error.colno}, near {near!r}"
        raise InputError("", problem, "one JSON object a line") from None
    except RecursionError:
        raise InputError("", "nested too deeply") from None
    except ValueError:
        raise InputError("", "holds a number of thousands of digits") from None


def _no_constants(name: str) -> NoReturn:
    raise InputError("", f"{name} is not a number", "leave a measure out, or null, if unknown")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(twice, "stands twice in one object")
    return fields
