"""How much of a long piece of work is done."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """Parts of a piece of work: runs of a grid, rows of a file."""

    total: int
    #: Kept from an earlier time, not done again.
    kept: int
    #: Done by now, besides those.
    done: int
