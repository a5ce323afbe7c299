"""Refusals of the service, as its clients see them."""

import json
from collections.abc import Mapping
from typing import Any

from penstock.errors import PenstockError


class ServiceError(PenstockError):
    """The service refused a request, or cannot be reached."""

    def __init__(self, status: int | None, problem: str, body: Mapping[str, Any]) -> None:
        super().__init__(status, problem, body)
        #: The status of the answer; None without one.
        self.status, self.problem = status, problem
        #: The whole answer: error, place, hint, and the character of a mistake in a predicate.
        self.body = dict(body)

    def __str__(self) -> str:
        return self.problem


def explain_answer(status: int, content: bytes) -> ServiceError:
    """Return the error for an answer of the service, or of something before it."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not isinstance(body, dict) or "error" not in body:
        return ServiceError(status, f"the service answered with status {status}", {})
    place, hint = body.get("place"), body.get("hint")
    if body.get("character"):
        place = f"{place}, character {body['character']}"
    problem = ": ".join(part for part in (place, body["error"]) if part)
    return ServiceError(status, f"{problem} ({hint})" if hint else problem, body)
