"""Reads request bodies within limits, and JSON that every engine and client can read."""

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request

from penstock.errors import InputError
from penstock.pubsub.server.problem import ProblemError

#: A body above the limit is read and dropped up to this size, so that its sender gets the answer.
_MAX_DROPPED_BYTES = 1 << 24
_MAX_DEPTH = 64


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the whole body; 413 if it is too large."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size <= max_bytes:
            parts.append(part)
        elif size > _MAX_DROPPED_BYTES:
            break
    if size > max_bytes:
        raise too_large(f"the body has more than {max_bytes:,} bytes", "body")
    return b"".join(parts)


async def read_lines(request: Request, max_bytes: int) -> AsyncIterator[bytes | None]:
    """Yield the lines of a body without their ends; None for a line that is too long."""
    rest, is_too_long = b"", False
    async for part in request.stream():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield None if is_too_long or len(line) > max_bytes else line
            is_too_long = False
        if len(rest) > max_bytes:
            # only its end is still to be found
            rest, is_too_long = b"", True
    if rest or is_too_long:
        yield None if is_too_long else rest


def too_large(error: str, place: str) -> ProblemError:
    """Return the answer to something too large; the connection is not used again."""
    hint = "GET /space shows the limits"
    return ProblemError(413, error, place=place, hint=hint, headers={"Connection": "close"})


def media_type(request: Request) -> str:
    """Return the type of the body without parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_json(data: bytes) -> Any:
    """Read JSON in UTF-8; refuse what JSON does not have, and what some readers cannot read."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("", f"is not UTF-8: byte {error.start + 1}") from None
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at line {error.lineno}, character {error.colno}"
        raise InputError("", problem) from None
    except (RecursionError, ValueError) as error:
        raise InputError("", f"cannot be read: {error}") from None
    _check_depth(value)
    return value


def parse_object(data: bytes) -> dict[str, Any]:
    """Read a JSON object."""
    return check_object(parse_json(data))


def check_object(value: object) -> dict[str, Any]:
    """Return a JSON value that must be an object."""
    if not isinstance(value, dict):
        raise InputError("", "must be a JSON object")
    return value


def dump_json(value: object) -> bytes:
    """Return compact JSON in UTF-8; `InputError` for what cannot be written."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError("", "has half of a surrogate pair, which is no character") from None
    except ValueError:
        raise InputError("", "has a number that is too large") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _check_depth(value: object) -> None:
    depth, level = 0, [value]
    while level:
        level = [
            item
            for outer in level
            for item in (
                outer.values()
                if isinstance(outer, dict)
                else outer
                if isinstance(outer, list)
                else ()
            )
            if isinstance(item, dict | list)
        ]
        depth += 1
        if depth > _MAX_DEPTH:
            raise InputError("", f"is nested more than {_MAX_DEPTH} levels deep")
