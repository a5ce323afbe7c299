"""Random requests: every answer is 2xx or 4xx, and mistakes are explained in JSON."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pubsub.server.conftest import Rig
from tests.pubsub.server.test_publications import ENCRYPTED, EVENT

from penstock.pubsub.server.publication_routes import MEDIA_TYPES

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["id", "predicate", "tests", "vector", "payload", "price", "data", "specversion", "source"]
)
PREDICATES = st.lists(
    st.sampled_from(["price", ">", "<", "3", "AND", "NOT", "(", ")", "'x'", "IN", "symbol", "="]),
    max_size=7,
).map(" ".join)
FIELDS = st.dictionaries(NAMES, VALUES | PREDICATES, max_size=4).map(json.dumps)
BODIES = (
    st.binary(max_size=60)
    | FIELDS.map(str.encode)
    | st.lists(FIELDS, max_size=4).map(lambda lines: "\n".join(lines).encode())
    | st.dictionaries(st.sampled_from([*EVENT, "x"]), VALUES, max_size=3).map(
        lambda change: json.dumps([EVENT | change]).encode()
    )
)
PATHS = st.sampled_from(
    ["/publications", "/subscriptions", "/space", "/status", "/openapi.json", "/"]
) | st.text(st.characters(codec="utf-8"), max_size=12).map(
    lambda id: f"/subscriptions/{quote(id, safe='')}"
)
HEADERS = st.dictionaries(
    st.sampled_from(["Content-Encoding", "Accept", "Last-Event-ID", "Range", "Expect-Not"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=10),
    max_size=2,
)


@pytest.fixture(scope="module", params=["plain", "aspe"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    with ExitStack() as stack:
        directory: Path = tmp_path_factory.mktemp("fuzz") / "service"
        rig = Rig(stack, directory)
        fast = {"requests_per_s": 1e6, "max_subscriptions": 10**6}
        rig.start(ENCRYPTED, **fast) if request.param == "aspe" else rig.start(**fast)
        yield rig.client()
        stack.close()
        rig.stop()


def check(answer: httpx.Response) -> None:
    assert 200 <= answer.status_code < 500, answer.text
    if answer.status_code >= 400 and answer.request.method != "HEAD":
        fields = answer.json()
        assert fields["error"] and {"place", "hint"} <= set(fields)
        assert "Traceback" not in answer.text


@settings(max_examples=80)
@given(
    method=st.sampled_from(["GET", "POST", "DELETE", "PUT", "HEAD", "PATCH", "OPTIONS"]),
    path=PATHS,
    kind=st.sampled_from([*MEDIA_TYPES, "", "text/plain", ";;", "application/json; charset=x"]),
    headers=HEADERS,
    body=BODIES,
)
def test_no_request_is_an_error_of_the_server(
    client: httpx.Client,
    method: str,
    path: str,
    kind: str,
    headers: dict[str, str],
    body: bytes,
) -> None:
    check(client.request(method, path, headers={"Content-Type": kind, **headers}, content=body))


@settings(max_examples=60)
@given(body=BODIES)
def test_no_subscription_is_an_error_of_the_server(client: httpx.Client, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    check(client.post("/subscriptions", headers=headers, content=body))


@settings(max_examples=60)
@given(body=BODIES, kind=st.sampled_from(MEDIA_TYPES))
def test_no_publication_is_an_error_of_the_server(
    client: httpx.Client, body: bytes, kind: str
) -> None:
    answer = client.post("/publications", headers={"Content-Type": kind}, content=body)
    check(answer)
    if answer.status_code == 200:
        results = [json.loads(line) for line in answer.text.splitlines()]
        assert all(result["status"] in (202, 400, 413) for result in results)
        lines = [line for line in body.split(b"\n") if line.strip()]
        assert len(results) == len(lines)


@settings(max_examples=30)
@given(
    last=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8).filter(
        lambda text: text.strip() == text
    ),
    after=st.text(max_size=5),
)
def test_no_stream_is_an_error_of_the_server(client: httpx.Client, last: str, after: str) -> None:
    headers = {"Last-Event-ID": last} if last else {}
    with client.stream("GET", "/notifications", headers=headers, params={"after": after}) as answer:
        assert answer.status_code in (200, 400)
