"""Every error raised on purpose.

PenstockError
├── InputError       what the user gave is wrong, and the user can mend it (exit code 2)
├── NotReadyError    the engine has no measures yet; the loop skips this tick
└── RescaleError     the engine refused a plan or lost it; the loop journals it and goes on
"""

from collections.abc import Iterable
from difflib import get_close_matches


class PenstockError(Exception):
    """Base of all errors raised on purpose."""


class InputError(PenstockError):
    """Something the user gave is wrong: where, which field, what is wrong with it, what to do.

    Pure code does not know in which file or line a value stood; the edge that
    read it adds that with `at`.

    >>> print(InputError("busy", "must be at most 1, got 1.5").at("run.jsonl:3"))
    run.jsonl:3: busy: must be at most 1, got 1.5
    """

    def __init__(self, field: str, problem: str, hint: str = "", where: str = "") -> None:
        self.where, self.field, self.problem, self.hint = where, field, problem, hint
        message = ": ".join(part for part in (where, field, problem) if part)
        super().__init__(f"{message}\nhint: {hint}" if hint else message)

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, str, str]]:
        # an exception is otherwise rebuilt from its message alone, in another process too
        return InputError, (self.field, self.problem, self.hint, self.where)

    def at(self, where: str) -> "InputError":
        """Return the same error with the place where the value was read."""
        return InputError(self.field, self.problem, self.hint, where)

    def under(self, field: str) -> "InputError":
        """Return the same error with its field placed inside another one."""
        inner = f"{field}.{self.field}" if self.field else field
        return InputError(inner, self.problem, self.hint, self.where)


class NotReadyError(PenstockError):
    """No measures yet, or the pipeline is restarting."""


class RescaleError(PenstockError):
    """The engine refused a plan or lost it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the closest known name, or all of them.

    >>> nearest("ds3", ["dhalion", "ds2"])
    "did you mean 'ds2'?"
    >>> nearest("zzz", ["dhalion", "ds2"])
    'known: dhalion, ds2'
    """
    choices = sorted(known)
    if close := get_close_matches(name, choices, n=1, cutoff=0.5):
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(choices)}" if choices else ""
