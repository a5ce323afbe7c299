"""Answers to requests that cannot be fulfilled: JSON with the mistake, its place and a hint."""

from collections.abc import Mapping
from typing import Any

from penstock.errors import InputError
from penstock.pubsub.language.predicate_error import PredicateError


class ProblemError(Exception):
    """A request is refused, with a status and an explanation for people."""

    def __init__(
        self,
        status: int,
        error: str,
        *,
        place: str = "",
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        **details: Any,
    ) -> None:
        super().__init__(f"{status} {place}: {error}")
        self.status, self.headers = status, dict(headers or {})
        self.body = {"error": error, "place": place, "hint": hint, **details}


def explain_input(error: InputError, place: str = "") -> ProblemError:
    """Return the answer to a mistake in a request; `character` counts from 1."""
    if isinstance(error, PredicateError):
        return ProblemError(
            400,
            error.reason,
            place=place or "predicate",
            hint=error.hint,
            character=error.position + 1,
        )
    field = ".".join(part for part in (place, error.field) if part)
    return ProblemError(400, error.problem, place=field, hint=error.hint)
