"""Maps, snapshots from answers, webhooks: without a Prometheus server."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.main import main
from penstock.control.execution import Patience
from penstock.control.requests import ControlRequest
from penstock.errors import InputError, NotReadyError, RescaleError
from penstock.prometheus import watch_loop
from penstock.prometheus.metric_map import MEASURES, built_in_maps, load_map, parse_map
from penstock.prometheus.metric_snapshot import build_snapshot
from penstock.prometheus.query_client import PrometheusClient
from penstock.prometheus.watch_loop import WatchSpec, watch
from penstock.prometheus.watched_engine import Webhook
from penstock.runs.control_file import append_request
from penstock.runs.journal import read_journal

GOOD = {
    "version": 1,
    "operator_label": "op",
    "queries": {"running": "r{$s}"},
    "variables": {"s": "x"},
}


class Server(HTTPServer):
    """Answers queries from a table, and takes posted messages."""

    values: dict[str, list[tuple[dict[str, str], str]]]
    status: int
    posted: list[tuple[dict[str, Any], str]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)["query"][0]
        vector = [{"metric": m, "value": [0, v]} for m, v in self.server.values.get(query, [])]
        kind = "matrix" if query == "matrix" else "vector"
        body = {"status": "success", "data": {"resultType": kind, "result": vector}}
        if query == "broken":
            body = {"status": "error", "error": "parse error"}
        self._send(400 if query == "broken" else 200, body)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        token = self.headers.get("Authorization", "")
        self.server.posted.append((json.loads(self.rfile.read(length)), token))
        self._send(self.server.status, {})

    def _send(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_given: object) -> None:
        """Nothing."""


@contextmanager
def serve(**values: dict[str, float]) -> Iterator[tuple[str, Server]]:
    """A server whose queries are names of measures."""
    server = Server(("127.0.0.1", 0), Handler)
    server.values = {
        query: [({"op": name}, str(value)) for name, value in samples.items()]
        for query, samples in values.items()
    }
    server.status, server.posted = 200, []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def write_map(path: Path, edges: str = "") -> Path:
    queries = "\n".join(
        f'{name} = "{name}"' for name in ("running", "offered", "input_rate", "busy", "output_rate")
    )
    path.write_text(f'version = 1\noperator_label = "op"\n{edges}\n[queries]\n{queries}\n')
    return path


@pytest.mark.parametrize("name", built_in_maps())
def test_built_in_maps_load_and_have_the_measures_of_ds2(name: str) -> None:
    loaded = load_map(name)
    assert {"running", "offered", "input_rate", "output_rate", "busy", "queue"} <= {*loaded.queries}
    assert not any("$" in query for query in loaded.queries.values())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": 2}, "version"),
        ({"operator_label": ""}, "operator_label"),
        ({"queries": {}}, "queries.running"),
        ({"queries": {"running": "r", "bussy": "x"}}, "queries.bussy"),
        ({"queries": {"running": "r{$none}"}}, "queries.running"),
        ({"queries": {"running": "r $ "}}, "queries.running"),
        ({"queries": {"running": 3}}, "queries.running"),
        ({"topology": {"a": "b"}}, "topology.a"),
        ({"more": 1}, "more"),
    ],
)
def test_a_wrong_map_names_its_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_map({**GOOD, **change}, "x", {})
    assert caught.value.field == field


def test_variables_and_edges_can_be_given() -> None:
    assert parse_map(GOOD, "x", {"s": "job='a'"}).queries["running"] == "r{job='a'}"
    with pytest.raises(InputError, match="no variable 'z'"):
        parse_map(GOOD, "x", {"z": "1"})
    loaded = load_map("flink", {"window": "5m"}, [("a", "b"), ("b", "c")])
    assert (
        loaded.topology == {"a": (), "b": ("a",), "c": ("b",)} and "[5m]" in loaded.queries["busy"]
    )
    with pytest.raises(InputError, match="unknown map"):
        load_map("flonk")


@given(
    st.dictionaries(
        st.sampled_from([*MEASURES, "running", "offered", "max_replicas", "min_replicas"]),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(-10, 1e6)),
    )
)
def test_any_finite_answer_gives_a_valid_snapshot_or_says_what_is_missing(
    answers: dict[str, dict[str, float]],
) -> None:
    try:
        snapshot = build_snapshot(1.0, answers, {"b": ("a",)})
    except NotReadyError:
        return
    assert {"a", "b"} <= {*snapshot.operators}
    for name, operator in snapshot.operators.items():
        assert operator.parallelism >= 1
        assert operator.busy is None or 0 <= operator.busy <= 1
        if answers.get("queue", {}).get(name) is None:
            assert operator.queue is None


def test_the_client_names_what_went_wrong() -> None:
    with pytest.raises(InputError, match="must be an http address"):
        PrometheusClient("ftp://x")
    with serve() as (url, _):
        client = PrometheusClient(url)
        assert client.query("nothing") == []
        with pytest.raises(InputError, match="parse error"):
            client.query("broken")
        with pytest.raises(InputError, match="gives a matrix"):
            client.query("matrix")
    with pytest.raises(NotReadyError, match="does not answer"):
        PrometheusClient(url, timeout_s=1).query("up")


def test_a_webhook_gets_the_change_with_its_token() -> None:
    with serve() as (url, server):
        hook = Webhook(url=f"{url}/scale", token="secret")
        hook.send({"replicas": {"a": 3}})
        assert server.posted == [({"replicas": {"a": 3}}, "Bearer secret")]
        server.status = 503
        with pytest.raises(RescaleError, match="refused it: 503"):
            hook.send({})
    with pytest.raises(RescaleError, match="does not answer"):
        hook.send({})
    with pytest.raises(InputError):
        Webhook(url="file:///etc/passwd")


def test_the_command_decides_and_journals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mapped = write_map(tmp_path / "map.toml", '[topology]\nb = ["a"]')
    measures = {
        "running": {"a": 2.0, "b": 1.0},
        "offered": {"a": 300.0},
        "input_rate": {"a": 100.0, "b": 100.0},
        "output_rate": {"a": 100.0, "b": 100.0},
        "busy": {"a": 0.5, "b": 0.5},
    }
    with serve(**measures) as (url, server):
        common = ["watch", "--prometheus", url, "--map", str(mapped), "--policy", "ds2", "--once"]
        assert main([*common, "--json", "--out", str(tmp_path / "run")]) == 0
        line = json.loads(capsys.readouterr().out)
        # one replica of a truly takes 100 / (0.5 x 2); of b 100 / 0.5
        wanted = {name: t["wanted"] for name, t in line["decision"]["targets"].items()}
        assert wanted == {"a": 3, "b": 2} and not line["applied"] and line["error"] == "dry run"
        assert main([*common, "--webhook", f"{url}/scale"]) == 0
        assert server.posted[0][0]["replicas"] == {"a": 3, "b": 2}
    tick = read_journal(tmp_path / "run" / "journal.jsonl").ticks[0]
    assert tick.snapshot.operators["b"].upstream == ("a",)
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "run")]) == 0
    assert main(["report", str(tmp_path / "run")]) == 0
    assert main([*common]) == 1  # nobody answers any more
    assert "does not answer" in capsys.readouterr().err


MEASURES_OF_A_CHANGE = {
    "running": {"a": 2.0},
    "offered": {"a": 300.0},
    "input_rate": {"a": 100.0},
    "output_rate": {"a": 100.0},
    "busy": {"a": 0.5},
}


def test_the_webhook_gets_the_decision_with_its_reasons(tmp_path: Path) -> None:
    mapped = write_map(tmp_path / "map.toml")
    with serve(**MEASURES_OF_A_CHANGE) as (url, server):
        common = ["watch", "--prometheus", url, "--map", str(mapped), "--policy", "ds2", "--once"]
        run = ["--webhook", f"{url}/scale", "--guard", "overprovision=1.2"]
        assert main([*common, *run, "--out", str(tmp_path / "run")]) == 0
    (message, _), tick = server.posted[0], read_journal(tmp_path / "run" / "journal.jsonl").ticks[0]
    assert message["replicas"] == {"a": 4} and message["version"] == 1
    target = message["decision"]["targets"]["a"]
    assert (target["current"], target["wanted"], target["reason"]) == (2, 4, "overprovisioned")
    assert (target["proposal"], target["proposal_reason"]) == (3, "rate-above-capacity")
    assert target["guards"][0]["guard"] == "overprovision"
    assert "ceil(" in target["formula"] and target["numbers"]
    # it is the decision of the journal
    assert message["decision"] == json.loads(json.dumps(tick.decision.to_json(with_numbers=True)))


def read_spec(tmp_path: Path, url: str) -> WatchSpec:
    mapped = load_map(str(write_map(tmp_path / "map.toml")))
    return WatchSpec(url=url, mapped=mapped, policy="ds2", interval_s=0.2, duration_s=60.0)


def test_the_webhook_gets_a_decision_as_people_changed_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    request = ControlRequest(action="pin", who="ann", asked_at=1.0, operator="a", replicas=7)
    enough = {**MEASURES_OF_A_CHANGE, "offered": {"a": 200.0}}
    with serve(**enough) as (url, server):
        ticks = iter(watch(read_spec(tmp_path, url), run, Webhook(url=f"{url}/scale")))
        assert not next(ticks).decision.is_change
        append_request(run, request)
        tick = next(ticks)
    ((message, _),) = server.posted
    assert message["replicas"] == {"a": 7}
    assert message["decision"]["targets"]["a"]["guards"][-1]["guard"] == "pin"
    assert message["decision"] == json.loads(json.dumps(tick.decision.to_json(with_numbers=True)))


def test_a_retry_without_a_decision_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_loop, "Patience", lambda: Patience(first_pause_s=1.0))
    with serve(**MEASURES_OF_A_CHANGE) as (url, server):
        server.status = 503
        ticks = iter(watch(read_spec(tmp_path, url), None, Webhook(url=f"{url}/scale")))
        assert not next(ticks).applied
        server.values, server.status = {}, 200  # Prometheus has no measures any more
        while len(server.posted) < 2:
            next(ticks)
    first, second = (message for message, _ in server.posted[:2])
    assert first["decision"]["targets"]["a"]["wanted"] == 3
    assert second["replicas"] == {"a": 3} and second["decision"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "--prometheus: missing"),
        ("--prometheus http://x --map flink", "--policy: missing"),
        ("--prometheus http://x --map flink --policy ds2 --edge ab", "--edge: must be A>B"),
        ("--prometheus http://x --map flink --policy ds2 --interval 0", "--interval: must be"),
        ("--prometheus http://x --map flink --policy nobody", "unknown policy"),
        ("--show-map nothing", "unknown map"),
    ],
)
def test_mistakes_are_named(options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", *options.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_map_can_be_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["watch", "--show-map", "flink"]) == 0
    copy = tmp_path / "copy.toml"
    copy.write_text(capsys.readouterr().out)
    assert load_map(str(copy)).queries == load_map("flink").queries
