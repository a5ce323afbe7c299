"""Commands to a running operator: a small file that its source reads before every batch.

The source runs in another process, so a command reaches it through a file.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from penstock.engines.spark.run_layout import RunLayout, read_json, write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The replicas of the next batch, and whether to hold the source."""

    replicas: int
    hold: bool = False
    #: Slices that stay on a replica, whatever their load.
    pins: Mapping[int, int] = field(default_factory=dict)
    #: The host of each replica, and its share of a core; empty without hosts.
    hosts: tuple[str, ...] = ()
    share: float = 1.0
    #: Minimum time from the begin of one batch to that of the next; None: that of the config.
    interval_s: float | None = None


def write_command(layout: RunLayout, operator: str, command: Command) -> None:
    """Replace an operator's command."""
    write_json(layout.order(operator), asdict(command))


def read_command(layout: RunLayout, operator: str) -> Command:
    """Read the present command."""
    data = read_json(layout.order(operator))
    return Command(
        replicas=data["replicas"],
        hold=data["hold"],
        pins={int(number): home for number, home in data.get("pins", {}).items()},
        hosts=tuple(data.get("hosts", ())),
        share=data.get("share", 1.0),
        interval_s=data.get("interval_s"),
    )
