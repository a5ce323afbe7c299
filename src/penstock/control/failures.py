"""Texts of errors for the journal."""

from penstock.errors import PenstockError


def in_words(error: BaseException) -> str:
    """Return the first line of an error, after its class name unless it is a `PenstockError`.

    >>> in_words(ZeroDivisionError("division by zero")), in_words(PenstockError("no machine"))
    ('ZeroDivisionError: division by zero', 'no machine')
    """
    kind = type(error).__name__
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # somebody else's class; the loop must live on whatever it does
        return kind
    if isinstance(error, PenstockError):
        return text
    return f"{kind}: {text}" if text else kind
