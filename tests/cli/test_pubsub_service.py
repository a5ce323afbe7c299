"""The verbs of `penstock pubsub` for the service: token, serve, publish, subscribe."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.pubsub.server.conftest import Rig, make_token
from tests.pubsub.server.test_publications import ENCRYPTED

from penstock.cli.main import main
from penstock.pubsub.server.service_directory import SPACE_FILE, open_directory
from penstock.pubsub.spaces.space_key import make_space_key, write_space_key

Capture = pytest.CaptureFixture[str]
SPACE = 'format = 1\nscheme = "plain"\n[attributes.price]\n'


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with ExitStack() as stack:
        made = Rig(stack, tmp_path / "service")
        yield made
        made.stop()


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: Capture) -> None:
    place = ["--dir", str(tmp_path)]
    assert main(["pubsub", "token", *place, "--name", "alice"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("pst_") and "not shown again" in shown.err
    assert main(["pubsub", "token", *place, "--name", "bob", "--role", "publisher", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["name"], fields["role"]) == ("bob", "publisher")
    assert main(["pubsub", "token", *place, "--list"]) == 0
    listed = capsys.readouterr().out
    assert "alice" in listed and "publisher" in listed
    secret = fields["token"].split("_", 2)[2]
    assert secret not in listed
    assert main(["pubsub", "token", *place, "--list", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["alice", "bob"]
    assert main(["pubsub", "token", *place, "--revoke", "alice"]) == 0
    assert capsys.readouterr().out == "revoked 1\n"
    assert main(["pubsub", "token", *place, "--revoke", "alice"]) == 2
    assert "'alice' has no token" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--name", "a", "--list"], ["--name", "a b"]])
def test_token_refuses_wrong_options(tmp_path: Path, options: list[str], capsys: Capture) -> None:
    assert main(["pubsub", "token", "--dir", str(tmp_path), *options]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_publish_reads_arguments_and_lines(
    rig: Rig, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.start()
    token = tmp_path / "token"
    token.write_text(make_token(rig.directory, "alice") + "\n")
    place = ["--url", rig.url, "--token-file", str(token)]
    assert main(["pubsub", "publish", *place, '{"price": 1}', '{"price": 2}']) == 0
    assert capsys.readouterr().out == "accepted 2, refused 0\n"
    monkeypatch.setattr("sys.stdin", io.StringIO('{"price": 3}\n\n{"price": 1e999}\n'))
    assert main(["pubsub", "publish", *place, "--json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["accepted"] == 1
    assert "event 2: line 2: cannot be read" in shown.err or "event 2:" in shown.err
    assert main(["pubsub", "publish", *place, "{"]) == 2
    assert "EVENT 1: is not JSON" in capsys.readouterr().err
    assert main(["pubsub", "publish", *place, "[1]"]) == 2
    assert "must be a JSON object" in capsys.readouterr().err


def test_subscribe_prints_events_and_removes_its_subscription(
    rig: Rig, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.start()
    monkeypatch.setenv("PENSTOCK_PUBSUB_TOKEN", make_token(rig.directory, "alice"))
    monkeypatch.setenv("PENSTOCK_PUBSUB_URL", rig.url)
    client = rig.client("alice")

    def publish() -> None:
        while not client.get("/subscriptions").json()["subscriptions"]:
            pass
        for price in range(8):
            client.post("/publications", json={"price": price})

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    assert main(["pubsub", "subscribe", "price > 3", "--count", "2", "--id", "big", "--json"]) == 0
    thread.join(10)
    shown = capsys.readouterr()
    assert "subscribed as big" in shown.err
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {"publication": 4, "event": {"price": 4}},
        {"publication": 5, "event": {"price": 5}},
    ]
    (state,) = client.get("/subscriptions").json()["subscriptions"]
    assert state["state"] in ("removing", "removed")


def test_a_kept_subscription_is_continued(
    rig: Rig, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.start()
    monkeypatch.setenv("PENSTOCK_PUBSUB_TOKEN", make_token(rig.directory, "alice"))
    monkeypatch.setenv("PENSTOCK_PUBSUB_URL", rig.url)
    client = rig.client("alice")
    client.post("/subscriptions", json={"id": "all", "predicate": "price >= 0"})
    for price in range(5):
        client.post("/publications", json={"price": price})
    command = ["pubsub", "subscribe", "price >= 0", "--id", "all", "--after", "2", "--count", "2"]
    assert main(command) == 0
    assert capsys.readouterr().out == '{"price": 3}\n{"price": 4}\n'
    (state,) = client.get("/subscriptions").json()["subscriptions"]
    assert state["state"] == "active"


def test_clients_of_an_encrypted_space_use_a_key(
    rig: Rig, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.start(ENCRYPTED)
    monkeypatch.setenv("PENSTOCK_PUBSUB_TOKEN", make_token(rig.directory, "alice"))
    write_space_key(tmp_path / "key", make_space_key(ENCRYPTED))
    event = '{"price": 3, "symbol": "ACME"}'
    place = ["--url", rig.url]
    assert main(["pubsub", "publish", *place, event]) == 2
    assert "a key file is needed" in capsys.readouterr().err
    assert main(["pubsub", "publish", *place, "--key", str(tmp_path / "key"), event]) == 0
    assert b"ACME" not in b"".join(
        request.content + request.payload  # type: ignore[union-attr]
        for batch in rig.broker.submitted
        for request in batch
    )


def test_clients_explain_what_is_missing(
    rig: Rig, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_PUBSUB_TOKEN", raising=False)
    assert main(["pubsub", "publish", "{}"]) == 2
    assert "PENSTOCK_PUBSUB_TOKEN is not set" in capsys.readouterr().err
    rig.start()
    monkeypatch.setenv("PENSTOCK_PUBSUB_TOKEN", make_token(rig.directory, "alice"))
    place = ["--url", rig.url]
    assert main(["pubsub", "subscribe", *place, "price >> 3"]) == 1
    assert "predicate, character 8: expected a number" in capsys.readouterr().err
    assert main(["pubsub", "subscribe", *place, "price > 3", "--count", "0"]) == 2
    assert main(["pubsub", "subscribe", *place, "price > 3", "--after", "0"]) == 2
    capsys.readouterr()
    assert main(["pubsub", "publish", "--url", "http://127.0.0.1:1", "{}"]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_a_space_is_declared_once(tmp_path: Path, capsys: Capture) -> None:
    space, other = tmp_path / "space.toml", tmp_path / "other.toml"
    space.write_text(SPACE)
    other.write_text(SPACE.replace("price", "volume"))
    serve = ["pubsub", "serve", "--local", "--port", "0", "--dir", str(tmp_path / "service")]
    assert main(serve) == 2
    assert "has no space yet" in capsys.readouterr().err
    with open_directory(tmp_path / "service", space) as declared:
        assert declared.paths == ("price",)
        # another server must not use the same directory
        assert main(serve) == 1
        assert "there is one writer at a time" in capsys.readouterr().err
    with open_directory(tmp_path / "service", None) as again:
        assert again == declared
    assert main([*serve, "--space", str(other)]) == 2
    assert "differs from that of" in capsys.readouterr().err
    (tmp_path / "service" / SPACE_FILE).write_text("[]")
    assert main(serve) == 2
    assert "is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "--port: must be from 0 to 65535"),
        (["--host", "no.such.host.invalid"], "--host"),
        (["--limit", "max_streams=0"], "max_streams: must be at least 1"),
        (["--limit", "max_stream=1"], "did you mean 'max_streams'?"),
        (["--slices", "1,2,1"], "--slices: needs a run on Spark"),
        (["--policy", "ds2"], "--policy: needs a run on Spark"),
    ],
)
def test_serve_refuses_wrong_options(
    tmp_path: Path, options: list[str], message: str, capsys: Capture
) -> None:
    space = tmp_path / "space.toml"
    space.write_text(SPACE)
    serve = ["pubsub", "serve", "--local", "--dir", str(tmp_path / "service")]
    assert main([*serve, "--space", str(space), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_port_in_use_is_named(rig: Rig, tmp_path: Path, capsys: Capture) -> None:
    space = tmp_path / "space.toml"
    space.write_text(SPACE)
    port = rig.start().url.rpartition(":")[2]
    serve = ["pubsub", "serve", "--local", "--dir", str(tmp_path / "other"), "--port", port]
    assert main([*serve, "--space", str(space)]) == 2
    assert f"--port: {port} cannot be used: Address already in use" in capsys.readouterr().err


def test_a_damaged_database_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    space = tmp_path / "space.toml"
    space.write_text(SPACE)
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "server.sqlite").write_bytes(b"no database" * 99)
    serve = ["pubsub", "serve", "--local", "--dir", str(tmp_path / "service")]
    assert main([*serve, "--space", str(space)]) == 2
    shown = capsys.readouterr().err
    assert "cannot be used" in shown and "Traceback" not in shown


@pytest.mark.parametrize(
    ("folder", "options", "message"),
    [("run", ["--local"], "was served on Spark before"), ("local", [], "without Spark before")],
)
def test_a_directory_keeps_its_engine(
    tmp_path: Path, folder: str, options: list[str], message: str, capsys: Capture
) -> None:
    space = tmp_path / "space.toml"
    space.write_text(SPACE)
    (tmp_path / "service" / folder).mkdir(parents=True)
    serve = ["pubsub", "serve", "--dir", str(tmp_path / "service"), "--space", str(space)]
    assert main([*serve, *options]) == 2
    assert message in capsys.readouterr().err
