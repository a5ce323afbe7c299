"""Votes of the replicas of one operator that decide alone, added up over one interval."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCount:
    """What the replicas of an operator have decided since the last snapshot."""

    #: Replicas before the first of these votes, and after the last of them, within the bounds.
    before: int
    after: int
    #: Replicas that decided, copies that they start, and replicas that stop.
    voters: int = 0
    copies: int = 0
    stops: int = 0
    #: Means over the voters: load and capacity in records/s, and the p of the decision.
    load: float | None = None
    capacity: float | None = None
    probability: float | None = None
    #: Whether its replicas never change, because a change would stop it.
    is_fixed: bool = False

    @property
    def proposal(self) -> int:
        """The number that the votes add up to, without the bounds."""
        return self.before + self.copies - self.stops

    def to_json(self) -> dict[str, Any]:
        """Write as a plain dictionary."""
        return asdict(self)
