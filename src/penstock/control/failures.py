"""Texts of errors for the journal."""

from penstock.errors import PenstockError


def describe_error(error: BaseException) -> str:
    """Return the first line of an error, after its class name unless it is a `PenstockError`.

    >>> describe_error(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    >>> describe_error(PenstockError("no machine"))
    'no machine'
    """
    kind = type(error).__name__
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # a foreign class may fail here, too; the loop must survive it
        return kind
    if isinstance(error, PenstockError):
        return text
    return f"{kind}: {text}" if text else kind
