"""The runs in a directory: finds them, and keeps readers of those that pages show."""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from penstock.dashboard.run_reader import RunReader
from penstock.errors import InputError
from penstock.runs.run_directory import JOURNAL, SPEC_FILE

#: Folders below the given one in which runs are looked for, and how many runs are listed.
MAX_DEPTH, MAX_RUNS = 3, 500
#: Readers that are kept; the one that was used longest ago is dropped.
MAX_READERS = 8
#: Folders of a run that hold no runs.
_INNER = {"topics", "checkpoints", "state"}


class RunLibrary:
    """Gives access to the runs below one directory, and to nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._readers: OrderedDict[str, RunReader] = OrderedDict()
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Return the runs by their path below the directory, the newest first; "." is itself."""
        runs = [(_written(path), name) for name, path in self._find(self.root, MAX_DEPTH)]
        return [name for _, name in sorted(runs, reverse=True)[:MAX_RUNS]]

    def reader(self, name: str) -> RunReader:
        """Return the reader of a run; `InputError` if there is no such run here."""
        directory = self.locate(name)
        with self._lock:
            reader = self._readers.pop(name, None)
            if reader is None or not (directory / SPEC_FILE).is_file():
                reader = RunReader(directory)
            self._readers[name] = reader
            while len(self._readers) > MAX_READERS:
                self._readers.popitem(last=False)
        return reader

    def locate(self, name: str) -> Path:
        """Return the directory of a run; names that lead elsewhere are refused."""
        problem = InputError("run", "there is no such run", "see the list of runs")
        parts = name.split("/")
        if len(name) > 1000 or "\0" in name or any(part in ("", "..") for part in parts):
            raise problem
        path = (self.root / name).resolve()
        # a link may lead out of the directory
        if not path.is_relative_to(self.root) or not (path / SPEC_FILE).is_file():
            raise problem
        if (path / SPEC_FILE).is_symlink() or (path / JOURNAL).is_symlink():
            raise problem
        return path

    def _find(self, folder: Path, depth: int) -> Iterator[tuple[str, Path]]:
        try:
            if (folder / SPEC_FILE).is_file() and not (folder / SPEC_FILE).is_symlink():
                yield folder.relative_to(self.root).as_posix(), folder
                if folder != self.root:
                    return
            if depth:
                inner = sorted(entry.name for entry in os.scandir(folder) if _may_hold_runs(entry))
                for name in inner:
                    yield from self._find(folder / name, depth - 1)
        except OSError:  # not readable
            return


def _may_hold_runs(entry: "os.DirEntry[str]") -> bool:
    is_hidden = entry.name.startswith(".") or entry.name in _INNER
    return not is_hidden and entry.is_dir(follow_symlinks=False)


def _written(run: Path) -> float:
    try:
        return (run / SPEC_FILE).stat().st_mtime
    except OSError:
        return 0.0
