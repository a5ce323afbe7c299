"""The levels of simulation, and which numbers of a profile each uses.

A number that would change nothing is refused: nobody should believe that it was simulated.
"""

from collections.abc import Iterable

from penstock.errors import InputError, nearest

_FLOWS = ("buffer_s", "retention_s", "retention_block_s", "hop_s", "batch_s")
_RECORDS = ("queue", "arrival_scv", "queue_size", "timeout_s")
_CHANGES = ("scope", "pause_s", "delay_s")

#: What a level uses of a section; sections that are not named it uses whole.
_USED: dict[str, dict[str, tuple[str, ...]]] = {
    "fluid": {"queues": _FLOWS, "batches": ()},
    # its monitor is exact; a restart always drops queues
    "records": {"rescaling": _CHANGES, "queues": _RECORDS, "monitor": (), "batches": ()},
    # where records wait, and what is measured, is the runtime's own
    "batches": {
        "rescaling": (*_CHANGES, "pause_s_per_gb", "warmup_s", "warmup_speed"),
        "queues": (),
        "monitor": ("window_s",),
    },
}
LEVELS = tuple(_USED)


def check_level(level: object) -> None:
    """Refuse a level that there is not."""
    if level not in LEVELS:
        raise InputError("level", f"unknown level {level!r}", nearest(str(level), LEVELS))


def check_used(level: str, section: str, names: Iterable[str]) -> None:
    """Refuse numbers of a section that would change nothing at this level.

    >>> check_used("batches", "queues", ["hop_s"])
    Traceback (most recent call last):
    penstock.errors.InputError: hop_s: changes nothing at level batches
    hint: it is used at level fluid
    """
    for name in names:
        users = [one for one in LEVELS if name in _USED[one].get(section, (name,))]
        if level not in users:
            hint = f"it is used at level {' and '.join(users)}"
            raise InputError(name, f"changes nothing at level {level}", hint)
