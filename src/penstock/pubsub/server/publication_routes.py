"""POST /publications: one event, lines of events, CloudEvents."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from penstock.errors import InputError
from penstock.pubsub.broker import PublishRequest
from penstock.pubsub.server.authentication import authenticate_publisher, get_service
from penstock.pubsub.server.cloud_events import BATCH, STRUCTURED, check_cloud_event
from penstock.pubsub.server.credentials import Account
from penstock.pubsub.server.json_body import (
    check_object,
    dump_json,
    media_type,
    parse_json,
    parse_object,
    read_body,
    read_lines,
    too_large,
)
from penstock.pubsub.server.message_content import make_publication
from penstock.pubsub.server.problem import ProblemError, explain_input
from penstock.pubsub.server.service import Service
from penstock.pubsub.spaces.space import ASPE

JSON = "application/json"
LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
MEDIA_TYPES = (JSON, *LINES, STRUCTURED, BATCH)
#: Lines that are submitted together.
_MAX_BLOCK = 1000


async def post_publications(request: Request) -> Response:
    """Accept publications; the answer comes when they are durable."""
    account = authenticate_publisher(request)
    service = get_service(request)
    kind = media_type(request)
    if kind not in MEDIA_TYPES:
        hint = f"use one of {', '.join(MEDIA_TYPES)}"
        raise ProblemError(415, f"cannot read {kind[:80]!r}", place="Content-Type", hint=hint)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(415, "compressed bodies are not read", place="Content-Encoding")
    if kind in LINES:
        return await _publish_lines(request, service, account)
    body = await read_body(request, service.limits.max_body_bytes)
    requests = _read_publications(service, kind, body)
    service.check_rate(account, "publications", len(requests))
    await _submit(service, requests)
    return JSONResponse({"accepted": len(requests)}, 202)


def _read_publications(service: Service, kind: str, body: bytes) -> list[PublishRequest]:
    try:
        if kind != BATCH:
            return [_make_publication(service, parse_object(body), kind == STRUCTURED, len(body))]
        events = parse_json(body)
        if not isinstance(events, list):
            raise InputError("", "must be a JSON array of CloudEvents")
    except InputError as error:
        raise explain_input(error, "body") from None
    if len(events) > service.limits.max_lines:
        raise too_large(f"more than {service.limits.max_lines:,} events", "body")
    requests = []
    for place, event in enumerate(events):
        try:
            requests.append(_make_publication(service, check_object(event), True))
        except InputError as error:
            # all or nothing, as the answer is one
            raise explain_input(error, f"body[{place}]") from None
    return requests


def _make_publication(
    service: Service, fields: dict[str, Any], is_cloud_event: bool, size: int | None = None
) -> PublishRequest:
    if is_cloud_event:
        if service.space.scheme == ASPE:
            hint = "send vector and payload as application/json; a client with the key makes them"
            raise InputError("", "a CloudEvent is plaintext, and this space is encrypted", hint)
        check_cloud_event(fields)
    max_bytes = service.limits.max_event_bytes
    publication = make_publication(service.space, fields)
    if max(size or 0, len(publication.payload)) > max_bytes:
        raise too_large(f"the publication has more than {max_bytes:,} bytes", "body")
    return publication


async def _submit(service: Service, requests: Sequence[PublishRequest]) -> None:
    if requests:
        await service.writer.publish(requests)
        service.published.add(len(requests), asyncio.get_running_loop().time())


async def _publish_lines(request: Request, service: Service, account: Account) -> Response:
    """Publish each line on its own; the answer has a line for each one that is not empty."""
    results: list[bytes] = []
    block: list[PublishRequest] = []
    number = count = 0
    async for line in read_lines(request, service.limits.max_event_bytes):
        number += 1
        if line is not None and not line.strip():
            continue
        count += 1
        if count > service.limits.max_lines:
            problem = f"more than {service.limits.max_lines:,} lines; the rest was not read"
            results.append(_describe(number, too_large(problem, f"line {number}")))
            break
        try:
            block.append(_read_line(service, line))
            results.append(b'{"line":%d,"status":202}' % number)
        except InputError as error:
            results.append(_describe(number, explain_input(error, f"line {number}")))
        except ProblemError as problem:
            results.append(_describe(number, problem))
        if len(block) >= _MAX_BLOCK:
            await _submit_at_rate(service, account, block)
            block = []
    await _submit_at_rate(service, account, block)
    return Response(b"\n".join([*results, b""]), media_type=LINES[0])


def _read_line(service: Service, line: bytes | None) -> PublishRequest:
    if line is None:
        problem = f"the line has more than {service.limits.max_event_bytes:,} bytes"
        raise too_large(problem, "line")
    return _make_publication(service, parse_object(line), is_cloud_event=False)


async def _submit_at_rate(
    service: Service, account: Account, block: Sequence[PublishRequest]
) -> None:
    """Submit a block when the account's rate allows it: a stream is slowed down, not refused."""
    while block and (wait_s := service.charge(account, "publications", len(block))) > 0:
        await asyncio.sleep(wait_s)
    await _submit(service, block)


def _describe(line: int, problem: ProblemError) -> bytes:
    return dump_json({"line": line, "status": problem.status, **problem.body})
