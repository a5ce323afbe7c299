"""POST /publications: what is accepted, in which form, and what is refused."""

import base64
import json
import re
from typing import Any

import httpx
import pytest
from tests.pubsub.server.conftest import Rig

from penstock.errors import FullError
from penstock.pubsub.broker import PublishRequest
from penstock.pubsub.client_content import EncryptedContent
from penstock.pubsub.server.credentials import Role
from penstock.pubsub.spaces.space import parse_space
from penstock.pubsub.spaces.space_key import make_space_key

ENCRYPTED = parse_space(
    {
        "format": 1,
        "scheme": "aspe",
        "attributes": {"price": {"low": 0, "high": 100, "step": 1}, "symbol": {"text": True}},
    }
)


def published(rig: Rig) -> list[PublishRequest]:
    return [
        request
        for batch in rig.broker.submitted
        for request in batch
        if isinstance(request, PublishRequest)
    ]


def contents(rig: Rig) -> list[Any]:
    return [json.loads(request.content) for request in published(rig)]


def post(client: httpx.Client, body: str | bytes, kind: str) -> httpx.Response:
    return client.post("/publications", content=body, headers={"Content-Type": kind})


def test_an_object_is_durable_before_the_answer(rig: Rig) -> None:
    client = rig.start().client()
    answer = client.post("/publications", json={"price": 3, "note": "ä\n☃"})
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1})
    assert contents(rig) == [{"price": 3, "note": "ä\n☃"}]
    assert published(rig)[0].payload == published(rig)[0].content


def test_requests_at_the_same_time_share_a_submit(rig: Rig) -> None:
    client = rig.start().client()
    lines = "\n".join(json.dumps({"price": i}) for i in range(2500))
    assert post(client, lines, "application/x-ndjson").status_code == 200
    assert [fields["price"] for fields in contents(rig)] == list(range(2500))
    assert len(rig.broker.submitted) <= 4


def test_each_line_has_a_result(rig: Rig) -> None:
    client = rig.start(max_event_bytes=60).client()
    long = json.dumps({"price": "x" * 80})
    lines = ['{"price": 1}', "", '{"price": ', "[1]", long, '{"price": 2}']
    answer = post(client, "\n".join(lines), "application/x-ndjson")
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [(each["line"], each["status"]) for each in results] == [
        *((1, 202), (3, 400), (4, 400), (5, 413), (6, 202)),
    ]
    assert results[1]["place"] == "line 3" and "is not JSON" in results[1]["error"]
    assert [fields["price"] for fields in contents(rig)] == [1, 2]


def test_a_stream_of_lines_has_a_limit(rig: Rig) -> None:
    client = rig.start(max_lines=3).client()
    answer = post(client, '{"price":1}\n' * 5, "application/x-ndjson")
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["status"] for each in results] == [202, 202, 202, 413]
    assert len(published(rig)) == 3


def test_a_fast_stream_of_lines_is_slowed_down(rig: Rig) -> None:
    client = rig.start(publications_per_s=2000).client()
    for _ in range(2):
        answer = post(client, '{"price":1}\n' * 3000, "application/x-ndjson")
        assert answer.text.count('"status":202') == 3000
    assert answer.elapsed.total_seconds() > 0.3
    assert len(published(rig)) == 6000


EVENT = {"specversion": "1.0", "id": "1", "source": "/feed", "type": "tick", "data": {"price": 7}}


def test_cloud_events_are_publications(rig: Rig) -> None:
    client = rig.start().client()
    structured = post(client, json.dumps(EVENT), "application/cloudevents+json; charset=utf-8")
    assert structured.status_code == 202
    batch = json.dumps([EVENT | {"id": "2"}, EVENT | {"id": "3"}])
    assert post(client, batch, "application/cloudevents-batch+json").json() == {"accepted": 2}
    assert post(client, "[]", "application/cloudevents-batch+json").json() == {"accepted": 0}
    assert contents(rig) == [EVENT, EVENT | {"id": "2"}, EVENT | {"id": "3"}]


def test_a_predicate_names_attributes_and_data_of_a_cloud_event(rig: Rig) -> None:
    client = rig.start().client()
    client.post("/subscriptions", json={"predicate": "data.price > 5"}).raise_for_status()
    post(client, json.dumps(EVENT), "application/cloudevents+json")
    assert rig.broker.read_notices(0)[0][0].publication == 0


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"specversion": "0.3"}, "body.specversion"),
        ({"id": ""}, "body.id"),
        ({"source": 3}, "body.source"),
        ({"type": None}, "body.type"),
        ({"data_base64": "eA=="}, "body.data"),
        ({"My-Attribute": "x"}, "body.My-Attribute"),
        ({"extension": {"a": 1}}, "body.extension"),
    ],
)
def test_what_is_no_cloud_event_names_its_place(
    shared: Rig, change: dict[str, Any], place: str
) -> None:
    client = shared.client()
    answer = post(client, json.dumps(EVENT | change), "application/cloudevents+json")
    assert (answer.status_code, answer.json()["place"]) == (400, place)
    batch = post(client, json.dumps([EVENT, EVENT | change]), "application/cloudevents-batch+json")
    assert batch.json()["place"] == place.replace("body", "body[1]")
    assert published(shared) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON: Expecting property name"),
        ("[]", "must be a JSON object"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": 1e999}', "too large"),
        ('{"a": "\\ud800"}', "surrogate"),
        ("[" * 5000, "cannot be read|is not JSON|nested"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested more than 64 levels"),
        (b'{"a": "\xff"}', "is not UTF-8: byte 8"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
    ],
)
def test_what_is_no_json_object_is_explained(shared: Rig, body: str | bytes, error: str) -> None:
    client = shared.client()
    answer = post(client, body, "application/json")
    assert answer.status_code == 400
    fields = answer.json()
    assert re.search(error, fields["error"]), fields
    assert fields["place"].startswith("body") and "hint" in fields


def test_a_body_that_is_too_large_is_refused(rig: Rig) -> None:
    client = rig.start(max_body_bytes=1000).client()
    answer = client.post("/publications", json={"price": "x" * 100_000})
    assert answer.status_code == 413
    assert answer.json()["error"] == "the body has more than 1,000 bytes"

    def parts() -> Any:
        for _ in range(100):
            yield b"x" * 1000

    headers = {"Content-Type": "application/json"}
    assert client.post("/publications", content=parts(), headers=headers).status_code == 413
    assert client.post("/publications", json={"price": 1}).status_code == 202


def test_an_event_that_is_too_large_is_refused(rig: Rig) -> None:
    client = rig.start(max_event_bytes=100).client()
    answer = client.post("/publications", json={"price": "x" * 200})
    problem = "the publication has more than 100 bytes"
    assert (answer.status_code, answer.json()["error"]) == (413, problem)


def test_other_types_are_refused(rig: Rig) -> None:
    client = rig.start().client()
    answer = post(client, "price=3", "application/x-www-form-urlencoded")
    assert answer.status_code == 415 and "application/x-ndjson" in answer.json()["hint"]
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    zipped = client.post("/publications", content=b"", headers=headers)
    assert (zipped.status_code, zipped.json()["place"]) == (415, "Content-Encoding")


def test_too_many_publications_have_to_wait(rig: Rig) -> None:
    client = rig.start(publications_per_s=1).client()
    answers = [client.post("/publications", json={"price": i}) for i in range(4)]
    assert [answer.status_code for answer in answers] == [202, 202, 429, 429]
    assert answers[2].headers["Retry-After"] == "1"
    assert "publications/s" in answers[2].json()["error"]
    # another account has its own rate
    assert rig.client("bob").post("/publications", json={"price": 1}).status_code == 202


def test_an_engine_that_fails_is_not_an_error_of_the_server(rig: Rig) -> None:
    client = rig.start().client()
    rig.broker.failures = [FullError("requests", "No space left on device")]
    answer = client.post("/publications", json={"price": 1})
    assert answer.status_code == 503 and "No space left" in answer.json()["error"]
    assert answer.headers["Retry-After"] == "5"
    assert client.post("/publications", json={"price": 2}).status_code == 202
    assert [fields["price"] for fields in contents(rig)] == [2]


def test_a_subscriber_must_not_publish(rig: Rig) -> None:
    client = rig.start().client("bob", Role.SUBSCRIBER)
    answer = client.post("/publications", json={"price": 1})
    assert answer.status_code == 403
    assert answer.json()["error"] == "the token of bob does not allow to publish"


def test_an_encrypted_space_takes_vectors_only(rig: Rig) -> None:
    client = rig.start(ENCRYPTED).client()
    content = EncryptedContent(make_space_key(ENCRYPTED))
    body = content.make_publication({"price": 3, "symbol": "ACME"})
    assert client.post("/publications", json=body).status_code == 202
    (request,) = published(rig)
    assert request.content == base64.b64decode(body["vector"])
    assert b"ACME" not in request.content + request.payload
    plain = client.post("/publications", json={"price": 3}).json()
    assert (plain["place"], plain["error"]) == ("body.price", "plaintext is refused")
    mixed = client.post("/publications", json={**body, "price": 3})
    assert mixed.status_code == 400
    cloud = post(client, json.dumps(EVENT), "application/cloudevents+json")
    assert cloud.status_code == 400 and "plaintext" in cloud.json()["error"]
    assert len(published(rig)) == 1


def test_a_wrong_vector_is_refused(rig: Rig) -> None:
    client = rig.start(ENCRYPTED).client()
    for vector in (None, 3, "", "!", "AAAA", base64.b64encode(bytes(48)).decode()):
        answer = client.post("/publications", json={"vector": vector, "payload": "AAAA"})
        assert (answer.status_code, answer.json()["place"]) == (400, "body.vector"), vector
