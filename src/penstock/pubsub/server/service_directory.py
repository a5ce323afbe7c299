"""The directory of a service: its space, its database, what the engine stores."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import InputError
from penstock.files.atomic import link_new, sync_directory, write_temporary
from penstock.files.lock import Lock
from penstock.files.text import explain_os_error, read_text
from penstock.pubsub.spaces.space import Space, parse_space, read_space

SPACE_FILE, LOCK_FILE = "space.json", "serve.lock"
#: Where a broker without Spark keeps its requests, and where a run on Spark is.
LOCAL, RUN = "local", "run"


@contextmanager
def open_directory(directory: Path, space_file: Path | None) -> Iterator[Space]:
    """Hold the directory of a service and yield its space, from a file at the first start."""
    declared = read_space(space_file) if space_file is not None else None
    with declare_space(directory, declared) as space:
        yield space


@contextmanager
def declare_space(directory: Path, declared: Space | None) -> Iterator[Space]:
    """Hold the directory of a service and yield its space.

    The space is declared at the first start and never changes: subscriptions depend on it.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--dir", f"{str(directory)!r}: {explain_os_error(error)}") from None
    with Lock(directory / LOCK_FILE):
        yield _agree(directory / SPACE_FILE, declared)


def _agree(path: Path, declared: Space | None) -> Space:
    if not path.exists():
        if declared is None:
            hint = "declare a space with --space FILE, see penstock pubsub serve --help"
            raise InputError("--space", f"{str(path.parent)!r} has no space yet", hint)
        temporary = write_temporary(path, json.dumps(declared.to_json(), indent=2).encode())
        link_new(temporary, path)
        temporary.unlink()
        sync_directory(path.parent)
        return declared
    stored = read_stored_space(path.parent)
    if declared is not None and declared != stored:
        hint = "use another directory for another space"
        raise InputError("--space", f"differs from that of {str(path.parent)!r}", hint)
    return stored


def check_engine(directory: Path, engine: str) -> None:
    """Refuse a directory of the other engine: its store has positions in that engine's topics."""
    other = RUN if engine == LOCAL else LOCAL
    if (directory / other).exists():
        kind = "without Spark" if other == LOCAL else "on Spark"
        hint = "use another directory"
        raise InputError("--local", f"{str(directory)!r} was served {kind} before", hint)


def read_stored_space(directory: Path) -> Space:
    """Read the space that a service has."""
    path = directory / SPACE_FILE
    try:
        fields = json.loads(read_text(path))
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        return parse_space(fields)
    except InputError as error:
        raise error.at(str(path)) from None
    except (ValueError, RecursionError) as error:
        raise InputError("", f"is damaged: {error}", where=str(path)) from None
