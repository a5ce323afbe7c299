"""POST, GET and DELETE /subscriptions: states, owners, mistakes."""

import base64
import json
import time
from typing import Any

import httpx
import pytest
from tests.pubsub.server.conftest import Rig
from tests.pubsub.server.test_publications import ENCRYPTED

from penstock.errors import FullError
from penstock.pubsub.broker import SubscribeRequest, UnsubscribeRequest
from penstock.pubsub.client_content import EncryptedContent
from penstock.pubsub.server.credentials import Role
from penstock.pubsub.spaces.space_key import make_space_key


def subscribe(client: httpx.Client, predicate: str = "price > 3", **fields: str) -> httpx.Response:
    return client.post("/subscriptions", json={"predicate": predicate, **fields})


def states(client: httpx.Client) -> dict[str, Any]:
    found = client.get("/subscriptions").json()["subscriptions"]
    return {
        each["id"]: (each["state"], each["active_from"], each["removed_from"]) for each in found
    }


def wait_for_states(client: httpx.Client, expected: dict[str, Any]) -> None:
    deadline = time.monotonic() + 10
    while (found := states(client)) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def test_a_subscriber_is_told_from_which_publication_a_change_is_effective(rig: Rig) -> None:
    client = rig.start().client()
    for price in range(3):
        client.post("/publications", json={"price": price})
    rig.broker.is_held = True
    answer = subscribe(client, id="big")
    assert answer.status_code == 201 and answer.headers["Location"] == "/subscriptions/big"
    assert answer.json()["state"] == "pending"
    assert states(client) == {"big": ("pending", None, None)}
    rig.broker.release()
    wait_for_states(client, {"big": ("active", 3, None)})
    client.post("/publications", json={"price": 5})
    rig.broker.is_held = True
    assert client.delete("/subscriptions/big").status_code == 202
    assert states(client) == {"big": ("removing", 3, None)}
    rig.broker.release()
    wait_for_states(client, {"big": ("removed", 3, 4)})


def test_a_doubled_id_is_a_conflict_until_it_is_removed(rig: Rig) -> None:
    client = rig.start().client()
    assert subscribe(client, id="a").status_code == 201
    answer = subscribe(client, id="a")
    assert (answer.status_code, answer.json()["place"]) == (409, "id")
    assert client.delete("/subscriptions/a").status_code == 202
    assert subscribe(client, id="a").status_code == 201
    numbers = [r.number for b in rig.broker.submitted for r in b if isinstance(r, SubscribeRequest)]
    assert len(numbers) == len(set(numbers)) == 2


def test_an_id_is_made_if_none_is_given(rig: Rig) -> None:
    client = rig.start().client()
    ids = {subscribe(client).json()["id"] for _ in range(3)}
    assert len(ids) == 3 and all(id.startswith("s-") for id in ids)


def test_accounts_do_not_see_each_other(rig: Rig) -> None:
    alice, bob = rig.start().client("alice"), rig.client("bob")
    assert subscribe(alice, id="a").status_code == subscribe(bob, id="b").status_code == 201
    assert list(states(alice)) == ["a"] and list(states(bob)) == ["b"]
    answer = bob.delete("/subscriptions/a")
    assert answer.status_code == 404
    # the answer is the same as for an id that nobody has
    assert answer.json()["error"] == "there is no subscription 'a'"
    assert subscribe(bob, id="a").status_code == 201
    assert bob.delete("/subscriptions/a").status_code == 202
    assert states(alice)["a"][0] in ("pending", "active")
    assert not any(
        isinstance(request, UnsubscribeRequest) and request.number == 1
        for batch in rig.broker.submitted
        for request in batch
    )


def test_a_broken_predicate_names_the_character(rig: Rig) -> None:
    client = rig.start().client()
    answer = subscribe(client, "price > 'x' AND volume > 3")
    assert answer.status_code == 400
    assert answer.json() == {
        "error": "expected a number after >, not the text 'x'",
        "place": "predicate",
        "hint": "texts have = != IN and LIKE",
        "character": 9,
    }
    unknown = subscribe(client, "price > 3 AND prise > 3").json()
    assert (unknown["character"], unknown["hint"]) == (15, "did you mean 'price'?")
    assert rig.broker.submitted == []


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "predicate"),
        ({"predicate": 3}, "predicate"),
        ({"predicate": "price > 3 AND symbol = '\ud800'"}, "predicate"),
        ({"predicate": "price > 3", "id": ""}, "id"),
        ({"predicate": "price > 3", "id": "a/b"}, "id"),
        ({"predicate": "price > 3", "id": 7}, "id"),
        ({"predicate": "price > 3", "id": "x" * 129}, "id"),
        ({"predicate": "price > 3", "ids": "a"}, "ids"),
    ],
)
def test_mistakes_name_their_place(shared: Rig, body: dict[str, Any], place: str) -> None:
    client = shared.client()
    # json.dumps escapes half a surrogate pair, which httpx cannot encode
    headers = {"Content-Type": "application/json"}
    answer = client.post("/subscriptions", content=json.dumps(body), headers=headers)
    assert (answer.status_code, answer.json()["place"]) == (400, place)


def test_an_account_has_a_limit_of_subscriptions(rig: Rig) -> None:
    client = rig.start(max_subscriptions=2).client()
    assert [subscribe(client, id=id).status_code for id in "abc"] == [201, 201, 403]
    assert "2 of 2" in subscribe(client, id="c").json()["error"]
    assert client.delete("/subscriptions/a").status_code == 202
    assert subscribe(client, id="c").status_code == 201


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Basic YTpi",
        "Bearer pst_x",
        f"Bearer pst_{'0' * 16}_{'x' * 43}",
        "Bearer pst_00_" + "é" * 10,
    ],
)
def test_a_wrong_token_is_refused_everywhere(shared: Rig, header: str | None) -> None:
    client = shared.client_with(None)
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for method, path in (
        *(("POST", "/publications"), ("POST", "/subscriptions"), ("GET", "/subscriptions")),
        *(("DELETE", "/subscriptions/a"), ("GET", "/notifications")),
        *(("GET", "/space"), ("GET", "/status")),
    ):
        answer = client.request(method, path, headers=headers)
        assert answer.status_code == 401, path
        assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="penstock pubsub"')
        assert answer.json()["place"] == "Authorization"


def test_a_publisher_has_no_subscriptions(rig: Rig) -> None:
    client = rig.start().client("feed", Role.PUBLISHER)
    for method, path in (
        *(("POST", "/subscriptions"), ("GET", "/subscriptions")),
        *(("DELETE", "/subscriptions/a"), ("GET", "/notifications")),
    ):
        answer = client.request(method, path)
        assert answer.status_code == 403
        assert answer.json()["hint"] == "use a token with the role subscriber or both"


def test_a_token_may_be_made_and_revoked_while_the_server_runs(rig: Rig) -> None:
    from penstock.pubsub.server.database import open_database  # noqa: PLC0415
    from penstock.pubsub.server.token_store import TokenStore  # noqa: PLC0415

    client = rig.start().client("late")
    assert client.get("/space").status_code == 200
    connection = open_database(rig.directory)
    TokenStore(connection).revoke("late")
    connection.close()
    assert client.get("/space").status_code == 401


def test_too_many_requests_have_to_wait(rig: Rig) -> None:
    client = rig.start(requests_per_s=2).client()
    codes = [client.get("/space").status_code for _ in range(6)]
    assert codes[:4] == [200] * 4 and 429 in codes[4:]


def test_a_subscription_of_a_failed_submit_is_withdrawn(rig: Rig) -> None:
    client = rig.start().client()
    rig.broker.failures = [FullError("requests", "full")]
    assert subscribe(client, id="a").status_code == 503
    assert states(client) == {"a": ("removing", None, None)}
    assert subscribe(client, id="a").status_code == 201
    rig.stop()
    rig.start()
    # the engine may have taken the first one before it failed, so it is removed
    assert rig.broker.submitted[-1] == [UnsubscribeRequest(number=1)]


def test_an_encrypted_space_takes_tests_only(rig: Rig) -> None:
    client = rig.start(ENCRYPTED).client()
    body = EncryptedContent(make_space_key(ENCRYPTED)).make_subscription("price > 3")
    answer = client.post("/subscriptions", json={"id": "a", **body})
    assert answer.status_code == 201 and "predicate" not in answer.json()
    ((request,),) = rig.broker.submitted
    assert isinstance(request, SubscribeRequest)
    assert request.content == base64.b64decode(body["tests"])
    plain = subscribe(client).json()
    assert (plain["place"], plain["error"]) == ("predicate", "must not be sent in plaintext")
    for tests in (None, "AAAA", body["tests"][:-8]):
        wrong = client.post("/subscriptions", json={"tests": tests})
        assert (wrong.status_code, wrong.json()["place"]) == (400, "tests")
