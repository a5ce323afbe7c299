"""A fuzzed command line and what it reads."""

from dataclasses import dataclass, field

#: An option with its value, or None for a switch.
Option = tuple[str, str | None]


@dataclass
class Case:
    """A command line and what it reads."""

    number: int
    words: list[str]
    arguments: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    stdin: str = ""
    #: Options that stay as they are, so that a case takes milliseconds.
    fixed: list[Option] = field(default_factory=list)

    @property
    def argv(self) -> list[str]:
        """What is given to the command."""
        given = [*self.options, *self.fixed]
        flat = [part for name, value in given for part in _option(name, value)]
        return [*self.words, *self.arguments, *flat]


def _option(name: str, value: str | None) -> list[str]:
    return [name] if value is None else [f"{name}={value}"]
