"""Which kinds of runs there are."""

from typing import Any

from penstock.errors import InputError, nearest
from penstock.lab.kind import Kind
from penstock.lab.on_spark import OnSpark
from penstock.lab.simulated import Simulated

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in (Simulated(), OnSpark())}


def find_kind(name: object) -> Kind[Any]:
    """Return a kind by its name."""
    if not isinstance(name, str) or name not in KINDS:
        hint = nearest(name, KINDS) if isinstance(name, str) else ""
        raise InputError("on", f"must be {' or '.join(KINDS)}, got {name!r}", hint)
    return KINDS[name]
