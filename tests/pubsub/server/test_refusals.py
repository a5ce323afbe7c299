"""Clear answers: a mistake has one status, its place, and what to do instead."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.pubsub.server.conftest import Rig, make_token
from tests.pubsub.server.streams import Listener

LINES = {"Content-Type": "application/x-ndjson"}


@dataclass(frozen=True)
class Mistake:
    """A request that is refused, and its answer."""

    method: str
    path: str
    status: int
    error: str
    place: str
    hint: str
    request: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


#: The rig has a subscription `a`, a limit of 500 bytes for bodies and of 300 for events.
MISTAKES = {
    "oversized body": Mistake(
        *("POST", "/publications", 413),
        *("the body has more than 500 bytes", "body", "GET /space shows the limits"),
        request={"json": {"note": "x" * 600}},
    ),
    "oversized subscription": Mistake(
        *("POST", "/subscriptions", 413),
        *("the body has more than 500 bytes", "body", "GET /space shows the limits"),
        request={"json": {"predicate": f"symbol = '{'x' * 600}'"}},
    ),
    "oversized event": Mistake(
        *("POST", "/publications", 413),
        *("the publication has more than 300 bytes", "body", "GET /space shows the limits"),
        request={"json": {"note": "x" * 400}},
    ),
    "broken event": Mistake(
        *("POST", "/publications", 400),
        *("is not JSON: Expecting value at line 1, character 11", "body", ""),
        request={"content": '{"price": }', "headers": {"Content-Type": "application/json"}},
    ),
    "broken predicate": Mistake(
        *("POST", "/subscriptions", 400),
        *("expected a number after >, not the text 'x'", "predicate"),
        "texts have = != IN and LIKE",
        request={"json": {"predicate": "price > 'x'"}},
        details={"character": 9},
    ),
    "unknown attribute": Mistake(
        *("POST", "/subscriptions", 400),
        *("attribute 'prise' is not declared in this space", "predicate"),
        "did you mean 'price'?",
        request={"json": {"predicate": "price > 3 AND prise < 9"}},
        details={"character": 15},
    ),
    "duplicate subscription id": Mistake(
        *("POST", "/subscriptions", 409, "there is a subscription 'a'", "id"),
        "choose another id, or remove the subscription first",
        request={"json": {"predicate": "price > 3", "id": "a"}},
    ),
    "unknown subscription": Mistake(
        *("DELETE", "/subscriptions/b", 404, "there is no subscription 'b'", "id"),
        "GET /subscriptions lists those of this account",
    ),
    "unknown content type": Mistake(
        *("POST", "/subscriptions", 415, "must be application/json", "Content-Type"),
        "send a JSON object with predicate and, if wanted, id",
        request={"content": "price > 3"},
    ),
    "event in the future": Mistake(
        *("GET", "/notifications?after=99", 400),
        "publication 99 is newer than all notifications of this service",
        *("Last-Event-ID", "the newest is -1"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_has_one_clear_answer(rig: Rig, mistake: Mistake) -> None:
    client = rig.start(max_body_bytes=500, max_event_bytes=300).client()
    client.post("/subscriptions", json={"predicate": "price > 1", "id": "a"}).raise_for_status()
    before = len(rig.broker.submitted)
    answer = client.request(mistake.method, mistake.path, **mistake.request)
    assert answer.status_code == mistake.status
    fields = {"error": mistake.error, "place": mistake.place, "hint": mistake.hint}
    assert answer.json() == {**fields, **mistake.details}
    assert len(rig.broker.submitted) == before, "a refused request must not reach the engine"


def test_an_oversized_line_is_refused_alone(rig: Rig) -> None:
    client = rig.start(max_event_bytes=300).client()
    lines = f'{{"price": 1}}\n{{"note": "{"x" * 400}"}}\n{{"price": 2}}\n'
    answer = client.post("/publications", content=lines, headers=LINES)
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [result["status"] for result in results] == [202, 413, 202]
    assert results[1]["error"] == "the line has more than 300 bytes"
    assert results[1]["hint"] == "GET /space shows the limits"


def test_a_token_of_another_service_is_refused(rig: Rig, tmp_path: Path) -> None:
    foreign = make_token(tmp_path / "other", "alice")
    own = rig.start().client("alice")
    for client in (rig.client_with(foreign), rig.client_with("pst_0011223344556677_" + "x" * 43)):
        for method, path in (("POST", "/publications"), ("GET", "/notifications")):
            answer = client.request(method, path, json={"price": 1})
            assert answer.status_code == 401
            assert answer.json() == {
                "error": "the token is not valid",
                "place": "Authorization",
                "hint": "it was revoked, or another service made it;"
                " penstock pubsub token makes one",
            }
            assert foreign not in answer.text
    assert own.post("/publications", json={"price": 1}).status_code == 202
    assert len(rig.broker.submitted) == 1


def test_the_token_of_another_account_reaches_nothing_of_this_one(rig: Rig) -> None:
    alice, bob = rig.start().client("alice"), rig.client("bob")
    body = {"predicate": "price > 1", "id": "a"}
    alice.post("/subscriptions", json=body).raise_for_status()
    assert bob.get("/subscriptions").json() == {"subscriptions": []}
    answer = bob.delete("/subscriptions/a")
    nothing = bob.delete("/subscriptions/b")
    assert (answer.status_code, nothing.status_code) == (404, 404)
    assert answer.text == nothing.text.replace("'b'", "'a'")
    with Listener(bob, "/notifications?subscription=a&after=-1") as of_bob, Listener(alice) as own:
        alice.post("/publications", json={"price": 2}).raise_for_status()
        assert own.next()["subscriptions"] == ["a"]
        assert of_bob.is_silent()
