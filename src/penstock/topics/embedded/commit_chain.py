"""The chain of commits of a topic, as this process knows it.

The file name of a commit is its first row, so the name of the next one is always known: following a
topic means looking for one file. Commits are appended at the end and removed from the start; the
last one is never removed.
"""

import fcntl
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from penstock.errors import DamagedError, TruncatedError
from penstock.files.atomic import link_new, replace, sync_directory, write_temporary
from penstock.files.lock import locked_directory
from penstock.topics.embedded.commit import COMMITS, Commit, commit_name, read_commit, write_commit

#: Commits kept in memory; of the others only the first rows.
_MAX_CACHED = 1024
_MAX_REMOVED_AT_ONCE = 64


class Chain:
    """The known commits in the directory of a topic. Not thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._topic, self._directory = directory.name, directory / COMMITS
        self._firsts = array("q")
        self._read: dict[int, Commit] = {}
        self.newest: Commit | None = None
        self._list()

    @property
    def first(self) -> int:
        """The first row that has not been removed."""
        self._drop_removed()
        return self._firsts[0] if self._firsts else self.end

    @property
    def end(self) -> int:
        """The offset after the last known row."""
        return self.newest.end if self.newest else 0

    def __len__(self) -> int:
        return len(self._firsts)

    def refresh(self) -> int:
        """Look for new commits and return the end."""
        if not self._follow() and not (self.newest and self._exists(self.newest.first)):
            # Commits are removed in order: while the newest known one exists, the next one was
            # not removed but never written. Otherwise list the directory.
            self._list()
        return self.end

    def oldest_first(self) -> Iterator[Commit]:
        """Yield all known commits, read lazily; other processes may remove some meanwhile."""
        start = self.first
        while start < self.end:
            try:
                commit = self._holding(start)
            except TruncatedError as removed:
                start = removed.first
            else:
                yield commit
                start = commit.end

    def overlapping(self, start: int, end: int) -> Iterator[Commit]:
        """Yield the commits that hold rows [start, end)."""
        if start < end and start < self.first:
            raise TruncatedError(self._topic, start, self.first)
        while start < end:
            commit = self._holding(start)
            yield commit
            start = commit.end

    def add(self, commit: Commit) -> bool:
        """Publish a commit at the end; False if another process was faster."""
        path = self._path(commit.first)
        written = write_temporary(path, write_commit(commit))
        try:
            # blocks removal; otherwise our name could be that of a removed commit
            with locked_directory(self._directory, fcntl.LOCK_SH):
                if self.refresh() != commit.first or not link_new(written, path):
                    return False
        finally:
            written.unlink(missing_ok=True)
        sync_directory(self._directory)
        self._append(commit)
        return True

    def rewrite(self, commit: Commit) -> None:
        """Replace a commit by one with the same rows; only while no process publishes."""
        replace(self._path(commit.first), write_commit(commit))
        sync_directory(self._directory)
        self._list()

    def remove_before(self, offset: int) -> list[Commit]:
        """Remove the commits that end at or before the offset, except the newest one.

        While a commit is being published, the rest is left for the next call.
        """
        removed: list[Commit] = []
        try:
            while len(self._firsts) > 1 and self._firsts[1] <= offset:
                with locked_directory(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    removed += self._remove_some(offset)
        except BlockingIOError:
            pass
        if removed:
            sync_directory(self._directory)
        return removed

    def _remove_some(self, offset: int) -> Iterator[Commit]:
        """Remove a few commits, so that publishers do not wait for long."""
        self._drop_removed()
        for first, following in pairwise(self._firsts[: _MAX_REMOVED_AT_ONCE + 1]):
            if following > offset:
                break
            yield self._load(first)
            self._path(first).unlink(missing_ok=True)
            del self._firsts[0]

    def _list(self) -> None:
        """List the directory: at the start, and when the known commits were removed."""
        while True:
            # A listing may miss files that are added or removed meanwhile. All commits before
            # the newest of the first listing existed when the second one started.
            newest = max(self._names(), default=-1)
            self._firsts = array("q", sorted(name for name in self._names() if name <= newest))
            while self._firsts and not self._exists(self._firsts[0]):
                del self._firsts[0]
            if self._firsts:
                try:
                    self.newest = self._load(newest)
                except FileNotFoundError:  # removed since the listing
                    continue
            elif newest >= 0:
                continue
            self._follow()
            return

    def _follow(self) -> bool:
        """Read new commits; False if there are none."""
        before = self.end
        while True:
            try:
                self._append(self._load(self.end))
            except FileNotFoundError:
                return self.end > before

    def _append(self, commit: Commit) -> None:
        self._firsts.append(commit.first)
        self.newest = commit

    def _drop_removed(self) -> None:
        gone = 0
        while gone < len(self._firsts) and not self._exists(self._firsts[gone]):
            gone += 1
        del self._firsts[:gone]
        if gone and not self._firsts:
            self._list()

    def _holding(self, offset: int) -> Commit:
        at = bisect_right(self._firsts, offset) - 1
        if at < 0:
            raise TruncatedError(self._topic, offset, self.first)
        first = self._firsts[at]
        try:
            commit = self._load(first)
        except FileNotFoundError:
            if offset >= self.first:
                raise self._damaged(first, "missing") from None
            raise TruncatedError(self._topic, offset, self.first) from None
        if offset >= commit.end:
            raise self._damaged(commit.end, "missing")
        return commit

    def _load(self, first: int) -> Commit:
        if first in self._read:
            return self._read[first]
        try:
            commit = read_commit(self._path(first).read_bytes())
        except ValueError as error:
            raise self._damaged(first, str(error)) from None
        if commit.first != first:
            raise self._damaged(first, f"holds the commit of row {commit.first}")
        while len(self._read) >= _MAX_CACHED:
            del self._read[next(iter(self._read))]
        self._read[first] = commit
        return commit

    def _names(self) -> Iterator[int]:
        for path in self._directory.iterdir():
            if path.suffix == ".json" and path.stem.isdecimal():
                yield int(path.stem)

    def _exists(self, first: int) -> bool:
        return self._path(first).exists()

    def _path(self, first: int) -> Path:
        return self._directory / commit_name(first)

    def _damaged(self, first: int, problem: str) -> DamagedError:
        return DamagedError(self._topic, f"{COMMITS}/{commit_name(first)}", problem)
