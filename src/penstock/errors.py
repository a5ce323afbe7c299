"""Every error raised on purpose.

PenstockError
├── InputError       what the user gave is wrong, and the user can mend it (exit code 2)
├── NotReadyError    the engine has no measures yet; the loop skips this tick
├── AnswerError      a policy answered nonsense; a loop on Spark journals it and changes nothing
├── PolicyError      a policy raised an exception; likewise
├── RunError         an operator failed for good, or records were lost (exit code 1)
├── RescaleError     the engine refused a plan or lost it; the loop journals it and goes on
└── TopicError       a topic cannot be read or written (exit code 1)
    ├── TruncatedError   rows that retention has removed were asked for
    ├── DamagedError     a file is cut short, altered or missing
    │   └── DamagedStateError    the same of an operator's state
    ├── LockedError      another process writes there
    └── FullError        no space left on the disk; nothing committed is lost
"""

from collections.abc import Iterable
from difflib import get_close_matches


class PenstockError(Exception):
    """Base of all errors raised on purpose."""


class InputError(PenstockError):
    """Something that was given is wrong: where, which field, what is wrong with it, what to do.

    Its parts are `where`, `field`, `problem` and `hint`. Code that reads a file adds the place
    with `at`.

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
    """There is no measure or result yet."""


class AnswerError(PenstockError):
    """A policy answered what no pipeline can have."""

    def __init__(self, policy: str, problem: str) -> None:
        super().__init__(policy, problem)
        self.policy, self.problem = policy, problem

    def __str__(self) -> str:
        return f"{self.policy} answered nonsense: {self.problem}"


class PolicyError(PenstockError):
    """A policy raised an exception instead of answering.

    >>> print(PolicyError("mine", "ZeroDivisionError: division by zero"))
    mine failed: ZeroDivisionError: division by zero
    """

    def __init__(self, policy: str, problem: str) -> None:
        super().__init__(policy, problem)
        self.policy, self.problem = policy, problem

    def __str__(self) -> str:
        return f"{self.policy} failed: {self.problem}"


class RunError(PenstockError):
    """A run on Spark ended because an operator failed, or because records were lost."""


class RescaleError(PenstockError):
    """The engine refused a plan or lost it."""


class TopicError(PenstockError):
    """A topic cannot be read or written.

    >>> print(TopicError("images", "holds 5 rows, but row 7 was asked for"))
    topic images: holds 5 rows, but row 7 was asked for
    """

    # the fields are the arguments of the exception, so that it can go to another process

    def __init__(self, topic: str, *fields: object) -> None:
        super().__init__(topic, *fields)
        self.topic = topic

    @property
    def problem(self) -> str:
        """What is wrong, without the name of the topic."""
        return str(self.args[1])

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.problem}"


class TruncatedError(TopicError):
    """Rows were asked for that retention has removed.

    >>> print(TruncatedError("images", 7, 100))
    topic images: row 7 was removed by retention; the first row there is 100
    """

    def __init__(self, topic: str, offset: int, first: int) -> None:
        super().__init__(topic, offset, first)
        self.offset, self.first = offset, first

    @property
    def problem(self) -> str:
        """What is wrong, without the name of the topic."""
        return f"row {self.offset} was removed by retention; the first row there is {self.first}"


class DamagedError(TopicError):
    """A file of a topic is cut short, altered or missing.

    >>> print(DamagedError("images", "segments/1f.arrow", "missing"))
    topic images: segments/1f.arrow: missing
    """

    def __init__(self, topic: str, file: str, what: str) -> None:
        super().__init__(topic, file, what)
        self.file, self.what = file, what

    @property
    def problem(self) -> str:
        """What is wrong, without the name of the topic."""
        return f"{self.file}: {self.what}"


class DamagedStateError(DamagedError):
    """A file of an operator's state is cut short, altered or missing.

    >>> print(DamagedStateError("counts", "segments/1f.arrow", "missing"))
    state of counts: segments/1f.arrow: missing
    """

    def __str__(self) -> str:
        return f"state of {self.topic}: {self.problem}"


class OutageError(TopicError):
    """The brokers of a topic do not answer, or another attempt has taken over; try again.

    >>> print(OutageError("images", "no answer from Kafka at host:9092"))
    topic images: no answer from Kafka at host:9092
    """


class LockedError(TopicError):
    """Another process writes there, to a topic or to a whole run.

    >>> print(LockedError("images", "process 4711"))
    images: process 4711 writes there, and there is one writer at a time
    """

    def __init__(self, topic: str, holder: str) -> None:
        super().__init__(topic, holder)
        self.holder = holder

    @property
    def problem(self) -> str:
        """What is wrong, without the name of the topic."""
        return f"{self.holder} writes there, and there is one writer at a time"

    def __str__(self) -> str:
        return f"{self.topic}: {self.problem}"


class FullError(TopicError):
    """There is no space left on the disk.

    >>> print(FullError("images", "No space left on device"))
    topic images: No space left on device; nothing committed is lost: make space and write again
    """

    @property
    def problem(self) -> str:
        """What is wrong, without the name of the topic."""
        return f"{self.args[1]}; nothing committed is lost: make space and write again"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the closest known name, or all of them.

    >>> nearest("mapp", ["map", "sink"])
    "did you mean 'map'?"
    >>> nearest("zzz", ["map", "sink"])
    'known: map, sink'
    """
    choices = sorted(known)
    if close := get_close_matches(name, choices, n=1, cutoff=0.5):
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(choices)}" if choices else ""


class SignalInterrupt(KeyboardInterrupt):
    """A signal ended a run before its records flowed. Its number decides the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
