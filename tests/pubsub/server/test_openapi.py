"""The description of the routes: complete, and well formed."""

import re
from typing import Any

from starlette.routing import Route
from tests.pubsub.server.conftest import Rig

from penstock.pubsub.server.app import make_routes
from penstock.pubsub.server.information_routes import PAGE_FILES
from penstock.pubsub.server.openapi import describe_api
from penstock.pubsub.server.publication_routes import MEDIA_TYPES
from penstock.pubsub.server.subscription_store import SubscriptionState

API = describe_api()
#: Files that a page loads are no part of the API.
FILES = set(PAGE_FILES) - {"/"}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, each) for path, of in API["paths"].items() for method, each in of.items()
    ]


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [name for item in value.values() for name in references(item)]
    if isinstance(value, list):
        return [name for item in value for name in references(item)]
    return []


def test_every_route_is_described_and_no_other() -> None:
    routes = {
        (route.path, method.lower())
        for route in make_routes()
        if isinstance(route, Route) and route.path not in FILES
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert {(path, method) for path, method, _ in operations()} == routes


def test_every_reference_leads_somewhere() -> None:
    names = {name.removeprefix("#/components/schemas/") for name in references(API)}
    assert names == set(API["components"]["schemas"])


def test_operations_have_what_the_format_requires() -> None:
    assert re.fullmatch(r"3\.1\.\d+", API["openapi"])
    assert {"title", "version"} <= set(API["info"])
    for path, _, operation in operations():
        assert operation["summary"] and operation["responses"]
        for status, answer in operation["responses"].items():
            assert re.fullmatch(r"[1-5]\d\d", status) and answer["description"]
        named = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path))
        assert all("schema" in each for each in operation.get("parameters", []))
        is_public = operation.get("security") == []
        assert is_public or "401" in operation["responses"]


def test_enumerations_are_those_of_the_code() -> None:
    bodies = API["paths"]["/publications"]["post"]["requestBody"]["content"]
    assert set(bodies) <= set(MEDIA_TYPES)
    states = API["components"]["schemas"]["Subscription"]["properties"]["state"]["enum"]
    assert states == [state.value for state in SubscriptionState]


def test_the_server_gives_it_to_everybody(rig: Rig) -> None:
    client = rig.start().client_with(None)
    assert client.get("/openapi.json").json() == API
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    for path in FILES:
        assert client.get(path).status_code == 200


def test_other_paths_and_methods_are_answered_in_json(rig: Rig) -> None:
    client = rig.start().client()
    for method, path, status in (
        *(("GET", "/nothing", 404), ("PUT", "/publications", 405), ("GET", "/../etc/passwd", 404)),
        *(("GET", "/page/page.js", 404), ("OPTIONS", "/space", 405), ("DELETE", "/", 405)),
    ):
        answer = client.request(method, path)
        assert answer.status_code == status
        assert set(answer.json()) == {"error", "place", "hint"}
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_space_and_status_say_what_is_served(rig: Rig) -> None:
    client = rig.start(max_streams=3).client("alice")
    space = client.get("/space").json()
    assert space["scheme"] == "plain" and "price" in space["attributes"]
    assert space["limits"]["max_streams"] == 3
    client.post("/subscriptions", json={"predicate": "price > 3"})
    client.post("/publications", json={"price": 4})
    status = client.get("/status").json()
    assert status["account"] == {"name": "alice", "can_publish": True, "can_subscribe": True}
    assert status["publications"]["accepted"] == 1 and status["publications"]["per_s"] > 0
    assert sum(status["subscriptions"].values()) == 1
    assert status["problem"] == "" and status["engine"] == {}
