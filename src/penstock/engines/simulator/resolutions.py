"""The resolutions of the simulator, and which numbers of a profile each uses.

A number that would change nothing is refused: nobody should believe that it was simulated.
"""

from collections.abc import Iterable

from penstock.errors import InputError, nearest

_FLOWS = ("buffer_s", "retention_s", "retention_block_s", "hop_s", "batch_s")
_RECORDS = ("queue", "arrival_scv", "queue_size", "timeout_s")
_CHANGES = ("scope", "pause_s", "delay_s")

#: What a resolution uses of a section; sections that are not named it uses whole.
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
RESOLUTIONS = tuple(_USED)


def check_resolution(resolution: object) -> None:
    """Refuse a resolution that there is not."""
    if resolution not in RESOLUTIONS:
        raise InputError(
            "resolution",
            f"unknown resolution {resolution!r}",
            nearest(str(resolution), RESOLUTIONS),
        )


def check_used(resolution: str, section: str, names: Iterable[str]) -> None:
    """Refuse numbers of a section that would change nothing at this resolution.

    >>> check_used("batches", "queues", ["hop_s"])
    Traceback (most recent call last):
    penstock.errors.InputError: hop_s: changes nothing at resolution batches
    hint: it is used at resolution fluid
    """
    for name in names:
        users = [one for one in RESOLUTIONS if name in _USED[one].get(section, (name,))]
        if resolution not in users:
            hint = f"it is used at resolution {' and '.join(users)}"
            raise InputError(name, f"changes nothing at resolution {resolution}", hint)
