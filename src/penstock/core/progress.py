"""Progress of a long piece of work."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """Parts of a piece of work: runs of a grid, rows of a file."""

    total: int
    #: Results of an earlier run that are reused.
    kept: int
    #: Parts done in this run.
    done: int
