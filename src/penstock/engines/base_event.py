"""What every event of a run has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.frozen_dict import FrozenDict


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseEvent:
    """What every event has: a time of the run, and the operator it is about ("" for none)."""

    at: float
    operator: str = ""
    #: Fields of another version that this one does not know.
    extra: Mapping[str, Any] = field(default_factory=FrozenDict)
