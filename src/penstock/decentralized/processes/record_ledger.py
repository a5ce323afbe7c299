"""The ledger of a run: which records each operator has processed, and how often."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Records named in a message; the others are counted.
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAccount:
    """What one operator did with the records that were sent."""

    operator: str
    processed: int
    #: Sent, never processed.
    lost: tuple[int, ...]
    #: Processed more than once.
    repeated: tuple[int, ...]
    #: Processed, never sent.
    unknown: tuple[int, ...]

    @property
    def is_exact(self) -> bool:
        """Whether every record was processed exactly once."""
        return not (self.lost or self.repeated or self.unknown)

    @property
    def problem(self) -> str:
        """What is wrong, in words; empty if nothing is."""
        faults = {"lost": self.lost, "repeated": self.repeated, "unknown": self.unknown}
        return "; ".join(
            f"{self.operator} {word} {len(records)}: {_name(records)}"
            for word, records in faults.items()
            if records
        )


class RecordLedger:
    """Collects the sequence numbers that the nodes report."""

    def __init__(self, operators: Sequence[str]) -> None:
        self._processed: dict[str, Counter[int]] = {name: Counter() for name in operators}
        self._sent: set[int] = set()

    def add_sent(self, records: Iterable[int]) -> None:
        """Note records that the source has sent."""
        self._sent.update(records)

    def add_processed(self, operator: str, records: Iterable[int]) -> None:
        """Note records that an instance of an operator has processed."""
        self._processed[operator].update(records)

    @property
    def sent(self) -> int:
        """How many records were sent."""
        return len(self._sent)

    def processed(self, operator: str) -> int:
        """Return how often an operator has processed a record."""
        return self._processed[operator].total()

    @property
    def is_settled(self) -> bool:
        """Whether every operator has processed every record that was sent."""
        return all(len(counts) >= len(self._sent) for counts in self._processed.values())

    def accounts(self) -> list[RecordAccount]:
        """Return the account of every operator."""
        return [self._account(name, counts) for name, counts in self._processed.items()]

    def _account(self, operator: str, counts: Counter[int]) -> RecordAccount:
        return RecordAccount(
            operator=operator,
            processed=counts.total(),
            lost=tuple(sorted(self._sent - counts.keys())),
            repeated=tuple(sorted(record for record, times in counts.items() if times > 1)),
            unknown=tuple(sorted(counts.keys() - self._sent)),
        )


def _name(records: Sequence[int]) -> str:
    named = ", ".join(map(str, records[:_NAMED]))
    return f"{named}, ..." if len(records) > _NAMED else named
