"""POST, GET and DELETE /subscriptions."""

import secrets

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from penstock.errors import InputError
from penstock.pubsub.broker import SubscribeRequest, UnsubscribeRequest
from penstock.pubsub.server.authentication import authenticate_subscriber, get_service
from penstock.pubsub.server.json_body import media_type, parse_object, read_body
from penstock.pubsub.server.message_content import parse_subscription
from penstock.pubsub.server.problem import ProblemError, explain_input
from penstock.pubsub.server.request_writer import NotSubmittedError
from penstock.pubsub.server.subscription_store import (
    DuplicateIdError,
    SubscriptionRecord,
    SubscriptionStore,
    TooManySubscriptionsError,
)
from penstock.pubsub.spaces.space import ASPE, Space


async def post_subscription(request: Request) -> Response:
    """Add a subscription; 201 when it is durable, with the publication to listen from."""
    account = authenticate_subscriber(request)
    service = get_service(request)
    if media_type(request) != "application/json":
        hint = "send a JSON object with predicate and, if wanted, id"
        raise ProblemError(415, "must be application/json", place="Content-Type", hint=hint)
    body = await read_body(request, service.limits.max_body_bytes)
    try:
        wanted = parse_subscription(service.space, parse_object(body))
    except InputError as error:
        raise explain_input(error) from None
    id = wanted.id or f"s-{secrets.token_hex(6)}"
    # behind it lies everything that the new subscription can match
    after = service.feed.last_publication

    def add(store: SubscriptionStore) -> tuple[SubscribeRequest, SubscriptionRecord]:
        limit = service.limits.max_subscriptions
        record = store.add(account.number, id, wanted.content, limit)
        service.feed.owners.add(record.number, account.number, id)
        return SubscribeRequest(number=record.number, content=record.content), record

    try:
        record = await service.writer.change(add)
    except DuplicateIdError:
        hint = "choose another id, or remove the subscription first"
        raise ProblemError(409, f"there is a subscription {id!r}", place="id", hint=hint) from None
    except TooManySubscriptionsError as error:
        problem = f"no more subscriptions: {error}"
        raise ProblemError(403, problem, hint="remove one first") from None
    location = {"Location": f"/subscriptions/{id}"}
    return JSONResponse({**describe(record, service.space), "after": after}, 201, headers=location)


async def get_subscriptions(request: Request) -> Response:
    """List the subscriptions of the account."""
    account = authenticate_subscriber(request)
    service = get_service(request)
    records = await service.thread.run(lambda: service.thread.store.read_all(account.number))
    return JSONResponse({"subscriptions": [describe(record, service.space) for record in records]})


async def delete_subscription(request: Request) -> Response:
    """Remove a subscription of the account; 202 when the request is durable."""
    account = authenticate_subscriber(request)
    service = get_service(request)
    id = request.path_params["id"]

    def remove(store: SubscriptionStore) -> tuple[UnsubscribeRequest, SubscriptionRecord]:
        record = store.find_live(account.number, id)
        if record is None:
            hint = "GET /subscriptions lists those of this account"
            raise ProblemError(404, f"there is no subscription {id[:128]!r}", place="id", hint=hint)
        if not service.writer.is_submitted(record.number):
            raise NotSubmittedError
        store.mark_removing([record.number])
        return UnsubscribeRequest(number=record.number), record

    await service.writer.change(remove)
    return JSONResponse({"id": id, "state": "removing"}, 202)


def describe(record: SubscriptionRecord, space: Space) -> dict[str, object]:
    """Return a subscription as its owner sees it; the publications are null until confirmed."""
    fields: dict[str, object] = {
        "id": record.id,
        "state": record.state.value,
        "active_from": record.active_from,
        "removed_from": record.removed_from,
    }
    if space.scheme != ASPE:
        fields["predicate"] = record.content.decode("utf-8")
    return fields
