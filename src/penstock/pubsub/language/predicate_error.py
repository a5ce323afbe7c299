"""A mistake in a predicate, with its place."""

from penstock.errors import InputError

#: Characters shown on each side of the place.
_CONTEXT = 40


class PredicateError(InputError):
    """A predicate cannot be read or compiled: what is wrong, at which character.

    >>> print(PredicateError("price >> 3", 7, "expected a number"))
    predicate: expected a number, at character 8
      price >> 3
             ^
    """

    def __init__(self, text: str, position: int, problem: str, hint: str = "") -> None:
        self.text, self.position, self.reason = text, position, problem
        place = f"{problem}, at character {position + 1}\n{show_place(text, position)}"
        super().__init__("predicate", place, hint)


def show_place(text: str, position: int) -> str:
    """Return the line around a character, and a caret below the character."""
    start = max(text.rfind("\n", 0, position) + 1, position - _CONTEXT)
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)][: 2 * _CONTEXT]
    shown = "".join(char if char.isprintable() else " " for char in line)
    return f"  {shown}\n  {' ' * (position - start)}^"
