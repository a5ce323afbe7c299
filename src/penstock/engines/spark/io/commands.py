"""What the loop asks of a running operator: a small file that its source looks at for every batch.

The source lives in a process of its own, so an order reaches it through a file.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from penstock.engines.spark.run_layout import RunLayout, read_json, write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How many replicas the next batch has, and whether there shall be a next batch."""

    replicas: int
    hold: bool = False
    #: Slices that shall be elsewhere from the next batch on, and the number of this wish.
    moves: Mapping[int, int] = field(default_factory=dict)
    wish: int = 0


def write_command(layout: RunLayout, operator: str, order: Command) -> None:
    """Replace an operator's order."""
    write_json(layout.order(operator), asdict(order))


def read_command(layout: RunLayout, operator: str) -> Command:
    """Read the present order."""
    data = read_json(layout.order(operator))
    moves = {int(number): home for number, home in data.get("moves", {}).items()}
    return Command(
        replicas=data["replicas"], hold=data["hold"], moves=moves, wish=data.get("wish", 0)
    )
