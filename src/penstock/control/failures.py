"""Texts and events for failures of policies and engines."""

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.port import Event
from penstock.errors import PenstockError


def in_words(error: BaseException) -> str:
    """Return the first line of an error, with the name of its class unless it is one of ours.

    >>> in_words(ZeroDivisionError("division by zero")), in_words(PenstockError("no machine"))
    ('ZeroDivisionError: division by zero', 'no machine')
    """
    kind = type(error).__name__
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # a foreign class may fail here, too; the loop must survive it
        return kind
    if isinstance(error, PenstockError):
        return text
    return f"{kind}: {text}" if text else kind


def failed(at: float, error: str, operator: str = "") -> Event:
    """Return the event that says what failed."""
    return Event(at=at, kind="failed", operator=operator, numbers=FrozenDict(error=error))
