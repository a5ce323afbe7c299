"""The commits of a topic, one behind the other, as this process knows them.

The name of a commit's file is its first row, so the next one's name is always known: following
a topic is looking for one file. Commits are added behind the last and removed from the first on,
and the last one always stays.
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

#: So many commits are kept in memory; of the others only where they begin.
_REMEMBERED = 1024
_REMOVED_AT_ONCE = 64


class Chain:
    """What is known of the commits in a topic's directory. Not for several threads at once."""

    def __init__(self, directory: Path) -> None:
        self._topic, self._directory = directory.name, directory / COMMITS
        self._firsts = array("q")
        self._read: dict[int, Commit] = {}
        self.newest: Commit | None = None
        self._look()

    @property
    def first(self) -> int:
        """The first row that is still there."""
        self._leave_out_removed()
        return self._firsts[0] if self._firsts else self.end

    @property
    def end(self) -> int:
        """The offset behind the last row known."""
        return self.newest.end if self.newest else 0

    def __len__(self) -> int:
        return len(self._firsts)

    def refresh(self) -> int:
        """Look for new commits and return the end."""
        if not self._follow() and not (self.newest and self._exists(self.newest.first)):
            # Commits go in order, so while the newest one known is there, the one behind it
            # was not removed but never written. If it is gone, or none is known, we cannot say.
            self._look()
        return self.end

    def oldest_first(self) -> Iterator[Commit]:
        """Yield all commits known, each read when it is asked for; others may remove some."""
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
        """Publish a commit behind the end; False if another process was first."""
        path = self._path(commit.first)
        written = write_temporary(path, write_commit(commit))
        try:
            # whoever removes commits waits; otherwise our name could be one that was removed
            with locked_directory(self._directory, fcntl.LOCK_SH):
                if self.refresh() != commit.first or not link_new(written, path):
                    return False
        finally:
            written.unlink(missing_ok=True)
        sync_directory(self._directory)
        self._append(commit)
        return True

    def rewrite(self, commit: Commit) -> None:
        """Replace a commit by one of the same rows; only while nobody publishes."""
        replace(self._path(commit.first), write_commit(commit))
        sync_directory(self._directory)
        self._look()

    def remove_before(self, offset: int) -> list[Commit]:
        """Remove the commits that end at or before the offset, but never the newest one.

        If a commit is just being published, what is left goes next time.
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
        """Remove a few, so that who publishes does not wait for long."""
        self._leave_out_removed()
        for first, following in pairwise(self._firsts[: _REMOVED_AT_ONCE + 1]):
            if following > offset:
                break
            yield self._load(first)
            self._path(first).unlink(missing_ok=True)
            del self._firsts[0]

    def _look(self) -> None:
        """List the directory: at the beginning, and when what was known is gone."""
        while True:
            # A listing may miss files that come or go meanwhile. All that comes before the
            # newest of a first listing was there when the second one began.
            newest = max(self._names(), default=-1)
            self._firsts = array("q", sorted(name for name in self._names() if name <= newest))
            while self._firsts and not self._exists(self._firsts[0]):
                del self._firsts[0]
            if self._firsts:
                try:
                    self.newest = self._load(newest)
                except FileNotFoundError:  # it was the newest one when we listed
                    continue
            elif newest >= 0:
                continue
            self._follow()
            return

    def _follow(self) -> bool:
        """Read the commits behind the end; False if there is none."""
        before = self.end
        while True:
            try:
                self._append(self._load(self.end))
            except FileNotFoundError:
                return self.end > before

    def _append(self, commit: Commit) -> None:
        self._firsts.append(commit.first)
        self.newest = commit

    def _leave_out_removed(self) -> None:
        gone = 0
        while gone < len(self._firsts) and not self._exists(self._firsts[gone]):
            gone += 1
        del self._firsts[:gone]
        if gone and not self._firsts:
            self._look()

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
        while len(self._read) >= _REMEMBERED:
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
