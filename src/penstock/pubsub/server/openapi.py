"""The OpenAPI description of the routes, written by hand; a test compares it with the routes."""

from typing import Any

from penstock import __version__

Fields = dict[str, Any]

_PROBLEM_TEXTS = {
    "400": "A mistake in the request; `place` and, in a predicate, `character` say where.",
    "401": "No token, or one that is not valid.",
    "403": "The token does not allow this, or the account has reached a limit.",
    "404": "The account has no live subscription with this id.",
    "409": "The account has a live subscription with this id.",
    "410": "Retention has removed notifications behind this publication.",
    "413": "Too large.",
    "415": "The content type is not known.",
    "429": "Too fast, or too many streams; see Retry-After.",
    "503": "The engine takes no requests; nothing was accepted.",
}
_EVENT_TYPES = (
    "`notification`: a publication that matched. `ready`: the stream is open. `resume`: the last"
    " event of a stream; reconnect with its id."
)


def describe_api() -> Fields:
    """Return the description, version 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock publish/subscribe",
            "version": __version__,
            "description": "Publish events, subscribe with predicates, get what matches.",
        },
        "security": [{"token": []}],
        "paths": {
            "/publications": {"post": _post_publications()},
            "/subscriptions": {"get": _get_subscriptions(), "post": _post_subscription()},
            "/subscriptions/{id}": {"delete": _delete_subscription()},
            "/notifications": {"get": _get_notifications()},
            "/space": {
                "get": _operation(
                    "The space: its scheme, attributes and limits", {"200": _json("object")}
                )
            },
            "/status": {
                "get": _operation(
                    "Rates, subscriptions by state, the engine's hosts and operators",
                    {"200": _json("object")},
                )
            },
            "/openapi.json": {"get": _public("This description", "application/json")},
            "/": {"get": _public("A page to try the service in a browser", "text/html")},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _post_publications() -> Fields:
    event = {"schema": {"$ref": "#/components/schemas/Publication"}}
    cloud_event = {"schema": {"$ref": "#/components/schemas/CloudEvent"}}
    return {
        **_operation(
            "Publish one event, or many; the answer comes when they are durable",
            {
                "200": {
                    "description": "Lines: the result of each line, as JSON lines.",
                    "content": {"application/x-ndjson": {"schema": _ref("LineResult")}},
                },
                "202": {**_json("Accepted"), "description": "Durable; matched soon."},
            },
            "400 403 413 415 429 503",
        ),
        "requestBody": {
            "required": True,
            "content": {
                "application/json": event,
                "application/x-ndjson": {
                    **event,
                    "example": '{"price": 1}\n{"price": 2}\n',
                },
                "application/cloudevents+json": cloud_event,
                "application/cloudevents-batch+json": {
                    "schema": {"type": "array", "items": _ref("CloudEvent")}
                },
            },
        },
    }


def _post_subscription() -> Fields:
    body = {"required": True, "content": {"application/json": {"schema": _ref("NewSubscription")}}}
    operation = _operation(
        "Subscribe with a predicate, or with encrypted tests",
        {"201": {**_json("Subscription"), "description": "Stored, and active soon."}},
        "400 403 409 413 415 429 503",
    )
    return {**operation, "requestBody": body}


def _get_subscriptions() -> Fields:
    return _operation(
        "The account's subscriptions, with their states", {"200": _json("Subscriptions")}, "403"
    )


def _delete_subscription() -> Fields:
    operation = _operation(
        "Remove a subscription",
        {"202": {**_json("object"), "description": "Stored; effective soon."}},
        "403 404 429 503",
    )
    return {**operation, "parameters": [_parameter("id", "path", "string", "Its id", True)]}


def _get_notifications() -> Fields:
    answer = {
        "description": f"Server-sent events; the id is the publication. {_EVENT_TYPES}",
        "content": {"text/event-stream": {"schema": _ref("Notification")}},
    }
    after = "Resume behind this publication; -1 for all that are stored"
    return {
        **_operation("Follow the account's notifications", {"200": answer}, "400 403 410 429"),
        "parameters": [
            _parameter("Last-Event-ID", "header", "integer", after),
            _parameter("after", "query", "integer", f"{after}. The header wins"),
            _parameter("subscription", "query", "string", "Only of this id; may be repeated"),
        ],
    }


def _schemas() -> Fields:
    text, whole = {"type": "string"}, {"type": "integer"}
    number = {"type": ["integer", "null"]}
    ids = {"type": "array", "items": text}
    base64 = {"type": "string", "contentEncoding": "base64"}
    states = {"enum": ["pending", "active", "removing", "removed"]}
    subscription = {
        "id": text,
        "state": states,
        "predicate": {**text, "description": "Not in encrypted spaces."},
        "active_from": {**number, "description": "The first publication that it can match."},
        "removed_from": {**number, "description": "The first that it no longer matches."},
        "after": {**whole, "description": "Follow notifications from here to miss none."},
    }
    return {
        "Problem": _object(
            {"error": text, "place": text, "hint": text, "character": whole},
            "error place hint",
        ),
        "Publication": {
            "description": "Any JSON object; in an encrypted space vector and payload, no others.",
            **_object({"vector": base64, "payload": base64}),
        },
        "CloudEvent": {
            "description": "CloudEvents 1.0; predicates name `type` or `data.price`.",
            **_object(
                {"specversion": {"const": "1.0"}, "id": text, "source": text, "type": text},
                "specversion id source type",
            ),
        },
        "Accepted": _object({"accepted": whole}, "accepted"),
        "LineResult": _object(
            {"line": whole, "status": whole, "error": text, "place": text, "hint": text},
            "line status",
        ),
        "NewSubscription": _object({"id": text, "predicate": text, "tests": base64}),
        "Subscription": _object(subscription, "id state"),
        "Subscriptions": _object(
            {"subscriptions": {"type": "array", "items": _ref("Subscription")}}, "subscriptions"
        ),
        "Notification": _object(
            {
                "publication": whole,
                "subscriptions": ids,
                "event": {"type": "object", "description": "The publication, in plain spaces."},
                "payload": {**base64, "description": "In encrypted spaces."},
            },
            "publication subscriptions",
        ),
    }


def _operation(summary: str, answers: Fields, problems: str = "") -> Fields:
    refusals = {
        status: {
            "description": _PROBLEM_TEXTS[status],
            "content": {"application/json": {"schema": _ref("Problem")}},
        }
        for status in ["401", *problems.split()]
    }
    return {"summary": summary, "responses": {**answers, **refusals}}


def _public(summary: str, media_type: str) -> Fields:
    answer = {"description": summary, "content": {media_type: {}}}
    return {"summary": summary, "security": [], "responses": {"200": answer}}


def _json(schema: str) -> Fields:
    reference = {"type": "object"} if schema == "object" else _ref(schema)
    return {"description": "OK", "content": {"application/json": {"schema": reference}}}


def _ref(schema: str) -> Fields:
    return {"$ref": f"#/components/schemas/{schema}"}


def _object(properties: Fields, required: str = "") -> Fields:
    fields: Fields = {"type": "object", "properties": properties}
    return {**fields, "required": required.split()} if required else fields


def _parameter(name: str, place: str, kind: str, text: str, required: bool = False) -> Fields:
    schema = {"type": kind}
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": text,
        "schema": schema,
    }
