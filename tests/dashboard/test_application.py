"""What the dashboard answers, and what it refuses."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.dashboard.pages import (
    HOSTILE,
    TOKEN,
    ask,
    copy_run,
    make_host_run,
    make_instance_run,
    make_runs,
    rename_operator,
    stretch_journal,
)
from tests.tools.timing import time_call

from penstock.dashboard import run_reader
from penstock.dashboard.run_library import MAX_READERS, RunLibrary
from penstock.dashboard.server import make_rules, prepare_dashboard
from penstock.errors import InputError
from penstock.files.lock import Lock
from penstock.runs.journal import read_journal
from penstock.runs.policy_replay import prepare_replay
from penstock.runs.replay import wanted
from penstock.runs.run_directory import read_run

BEARER = f"Bearer {TOKEN}"


def test_the_page_and_its_files_are_in_the_package(two_runs: Path) -> None:
    get = ask(two_runs)
    page = get("/")
    assert page.status_code == 200 and "<title>Penstock</title>" in page.text
    for name in ("uplot.js", "uplot.css", "style.css", "app.js", "icon.svg"):
        assert f"assets/{name}" in page.text
        assert get(f"/assets/{name}").status_code == 200
    # nothing is loaded from elsewhere, and nothing stands inline
    assert "http://" not in page.text and "https://" not in page.text
    assert " style=" not in page.text and "<script>" not in page.text and "onclick" not in page.text
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy


def test_runs_are_listed_and_described(two_runs: Path) -> None:
    get = ask(two_runs)
    assert {run["name"] for run in get("/api/runs").json()["runs"]} == {"ds2", "dhalion"}
    overview = get("/api/overview?run=ds2").json()
    assert overview["title"] == "q1 under cosine, ds2 on simulated flink"
    assert (overview["state"], overview["ticks"], overview["end_s"]) == ("finished", 120, 1800.0)
    assert get("/api/runs", x="y").headers["cache-control"] == "no-store"


def test_a_single_run_can_be_served(two_runs: Path) -> None:
    get = ask(two_runs / "ds2")
    assert [run["name"] for run in get("/api/runs").json()["runs"]] == ["."]
    assert get("/api/overview?run=.").json()["ticks"] == 120


def test_curves_are_the_columns_of_the_journal(two_runs: Path) -> None:
    curves = ask(two_runs)("/api/curves?run=ds2&points=4000").json()
    ticks = read_journal(two_runs / "ds2" / "journal.jsonl").ticks
    assert curves["times"] == [tick.at for tick in ticks]
    assert curves["operators"]["mapper"]["running"] == [t.status.running["mapper"] for t in ticks]
    assert curves["run"]["backlog"] == pytest.approx(
        [t.status.backlog_records for t in ticks], rel=1e-5
    )
    assert curves["objective_s"] == 60.0 and not curves["is_partial"]
    zoomed = ask(two_runs)("/api/curves?run=ds2&from=300&to=600").json()
    assert zoomed["times"][0] == 285.0 and zoomed["times"][-1] == 615.0


def test_a_tick_has_the_graph_and_the_decision_of_its_time(two_runs: Path) -> None:
    answer = ask(two_runs)("/api/tick?run=ds2&at=20").json()
    tick = read_journal(two_runs / "ds2" / "journal.jsonl").ticks[0]
    nodes = {node["name"]: node for node in answer["graph"]["nodes"]}
    assert [node["layer"] for node in nodes.values()] == [0, 1, 2]
    assert nodes["source"]["queue"] == tick.snapshot.operators["source"].queue
    assert nodes["source"]["is_bottleneck"] and not nodes["sink"]["is_bottleneck"]
    assert (nodes["source"]["running"], nodes["source"]["requested"]) == (5, 6)
    assert answer["graph"]["edges"][0]["rate"] == tick.snapshot.operators["source"].output_rate
    target = answer["story"]["targets"][0]
    assert (target["proposal"], target["wanted"]) == (5, 6)
    assert target["guards"][0]["guard"] == "overprovision"
    assert target["formula"][1].startswith("wanted = ceil(")
    # a tick of the cool-down shows the measures before it
    later = ask(two_runs)("/api/tick?run=ds2&at=100").json()
    assert later["at"] == 90.0 and later["graph"]["measured_at"] == 15.0
    assert "cool-down" in later["story"]["why_not"]


def test_decisions_can_be_filtered_and_continued(two_runs: Path) -> None:
    get = ask(two_runs)
    ticks = read_journal(two_runs / "ds2" / "journal.jsonl").ticks
    changes = [t.at for t in ticks if t.decision and t.decision.is_change]
    answer = get("/api/decisions?run=ds2&limit=2").json()
    seen = [entry["at"] for entry in answer["entries"]]
    while answer["next"] is not None:
        answer = get(f"/api/decisions?run=ds2&limit=2&before={answer['next']}").json()
        seen += [entry["at"] for entry in answer["entries"]]
    assert seen == changes[::-1]
    only = get("/api/decisions?run=ds2&operator=sink").json()["entries"]
    assert only and {item["operator"] for entry in only for item in entry["items"]} == {"sink"}
    assert get("/api/decisions?run=ds2&text=overprovision").json()["entries"]
    assert not get("/api/decisions?run=ds2&text=nosuchword").json()["entries"]
    assert len(get("/api/decisions?run=ds2&kind=all&limit=100").json()["entries"]) == 100
    assert get("/api/decisions?run=ds2&kind=failed").json()["entries"] == []
    assert get("/api/decisions?run=ds2&kind=x").status_code == 400
    number = get("/api/decisions?run=ds2").json()["entries"][-1]["number"]
    story = get(f"/api/decision?run=ds2&number={number}").json()
    assert story["targets"][0]["effect"]["ran_after_s"] == 0.0
    assert get("/api/decision?run=ds2&number=99999").status_code == 400


def test_runs_are_compared_by_their_results(two_runs: Path) -> None:
    answer = ask(two_runs)("/api/compare?run=ds2&run=dhalion").json()
    rows = {row["label"]: row for row in answer["rows"]}
    hours = [read_run(two_runs / name).result.replica_hours for name in ("ds2", "dhalion")]
    assert rows["replica-hours"]["best"] == hours.index(min(hours))
    assert " % less than " in rows["replica-hours"]["verdict"]
    assert answer["remarks"] == [
        "One run each: differences say nothing about other seeds or loads."
    ]
    assert ask(two_runs)("/api/compare").status_code == 400


def test_another_policy_answers_as_in_a_replay(two_runs: Path) -> None:
    answer = ask(two_runs)("/api/replay?run=ds2&policy=dhalion&points=4000")
    assert answer.status_code == 200, answer.text
    line = answer.json()
    run = read_run(two_runs / "ds2")
    # guards of the recorded run, as its journal has them
    answers = prepare_replay(run, "dhalion", guards=dict(run.journal.run["guards"])).open_loop()
    assert line["times"] == [answer.at for answer in answers]
    assert line["replicas"] == [sum(wanted(answer.other).values()) for answer in answers]
    for policy in ("./evil.py", "/tmp/evil.py", "nobody", ""):
        assert ask(two_runs)(f"/api/replay?run=ds2&policy={policy}").status_code == 400


def test_health_is_in_words(tmp_path: Path, two_runs: Path) -> None:
    run = copy_run(two_runs / "ds2", tmp_path / "run")
    (run / "result.json").unlink()
    event = {"at": 1800.0, "kind": "failed", "operator": "mapper", "error": "no machine is free"}
    with (run / "journal.jsonl").open("ab") as stream:
        last = json.loads((run / "journal.jsonl").read_bytes().splitlines()[-1])
        stream.write(b"garbage\n")
        stream.write(
            json.dumps(
                {"at": 1815.0, **{k: v for k, v in last.items() if k != "at"}, "events": [event]}
            ).encode()
            + b"\n"
        )
    health = ask(tmp_path)("/api/health?run=run").json()
    assert "1 lines of the journal cannot be read" in health["warnings"]
    assert "1 failures of operators or changes" in health["warnings"]
    assert health["events"][0]["text"] == "mapper failed: no machine is free"
    assert health["events_until"] is None and not health["events_left_out"]
    # at an earlier time, an event that came later is not known yet
    earlier = ask(tmp_path)("/api/health?run=run&at=1700").json()
    assert earlier["events_until"] == 1700.0
    assert not any("no machine is free" in event["text"] for event in earlier["events"])
    assert "1 failures of operators or changes" in earlier["warnings"]
    assert ask(tmp_path)("/api/health?run=run&at=x").status_code == 400


def test_hosts_and_slices_of_a_run_are_shown(tmp_path: Path) -> None:
    make_host_run(tmp_path / "hub")
    ticks = read_journal(tmp_path / "hub" / "journal.jsonl").ticks
    moved = [t for t in ticks if t.decision and t.decision.placement and t.decision.placement.moves]
    get = ask(tmp_path)
    before = get(f"/api/tick?run=hub&at={moved[0].at - 5}").json()["hosts"]
    assert before["moves"] is None and len(before["hosts"]) == 1
    answer = get(f"/api/tick?run=hub&at={moved[-1].at + 4}").json()
    shown, last = answer["hosts"], ticks[int(answer["number"])]
    assert answer["graph"]["nodes"][0]["name"] == "hosts" and answer["instances"] is None
    # every host with its load and its slices, as measured
    assert last.snapshot is not None and shown["operators"] == ["AP", "EP", "M"]
    hosts = last.snapshot.hosts
    assert {h["name"]: h["load"] for h in shown["hosts"]} == {n: h.load for n, h in hosts.items()}
    for host in shown["hosts"]:
        assert {name for _, name, _ in host["slices"]} == set(hosts[host["name"]].slices)
        assert all(name.startswith(shown["operators"][place]) for place, name, _ in host["slices"])
    # the last moves stay until there are others, and the delay is that of the tick
    assert shown["moves"]["at"] == moved[-1].at and shown["moves"]["is_applied"]
    moves = moved[-1].decision.placement.moves
    assert [m["slice"] for m in shown["moves"]["list"]] == [move.slice for move in moves]
    (delays,) = last.status.latency.values()
    assert shown["delay_s"]["p95"] == delays.percentile(95)
    curves = get("/api/curves?run=hub&points=4000").json()["run"]
    assert max(curves["moves"]) == max(len(t.decision.placement.moves) for t in moved)
    assert curves["hosts"][-1] == len(ticks[-1].snapshot.hosts)
    assert get("/api/decisions?run=hub&kind=all").status_code == 200


def test_instances_and_messages_of_a_decentralized_run_are_shown(
    tmp_path: Path, two_runs: Path
) -> None:
    timeline = make_instance_run(tmp_path / "alone")
    get = ask(tmp_path)
    overview = get("/api/overview?run=alone").json()
    assert (
        overview["title"] == "3 operators x 4 under brownian, decentralized on simulated instances"
    )
    assert (overview["ticks"], overview["state"]) == (60, "finished")
    assert not overview["is_controlled"]
    step = max(range(60), key=lambda step: timeline.total.messages[step])
    rows = get(f"/api/tick?run=alone&at={step + 1}").json()["instances"]["rows"]
    for row, series in zip(rows, timeline.operators, strict=True):
        assert row["messages"] == series.messages[step]
        assert row["active"] + row["stopping"] == series.instances[step]
    decided = [a for a in timeline.actions if a.step == step]
    assert sum(row["copies"] for row in rows) == sum(a.copies for a in decided)
    assert sum(row["stops"] for row in rows) == sum(not a.copies for a in decided)
    curves = get("/api/curves?run=alone&points=4000").json()
    assert curves["run"]["messages"] == timeline.total.messages
    assert curves["operators"]["operator 2"]["messages"] == timeline.operators[1].messages
    # a run in which a policy decides has neither
    tick = ask(two_runs)("/api/tick?run=ds2&at=20").json()
    assert tick["instances"] is None and tick["hosts"] is None


# --- security


def test_a_wrong_token_changes_nothing(tmp_path: Path, two_runs: Path) -> None:
    run = copy_run(two_runs / "ds2", tmp_path / "run")
    get = ask(tmp_path)
    body = json.dumps({"run": "run", "action": "pause", "who": "ann"}).encode()
    with Lock(run / "lock"):
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
            answer = get("/api/control", "POST", body, **headers)
            assert answer.status_code == 401 and not (run / "control.jsonl").exists()
        assert get("/api/control", "POST", body, authorization=BEARER).status_code == 202
        line = json.loads((run / "control.jsonl").read_text())
        assert (line["action"], line["who"]) == ("pause", "ann")
        assert abs(line["at"] - time.time()) < 60
        for wrong in (
            b"{",
            b"[]",
            b"{}",
            body.replace(b"pause", b"stop"),
            body.replace(b'"run": "run"', b'"run": "../x"'),
            b'{"run":"run","action":"pin","operator":"nobody","replicas":1,"who":"a"}',
        ):
            assert get("/api/control", "POST", wrong, authorization=BEARER).status_code == 400
        assert get("/api/control", "POST", b" " * 5000, authorization=BEARER).status_code == 413
    # nobody reads the requests of a run that is over
    assert get("/api/control", "POST", body, authorization=BEARER).status_code == 409


def test_a_server_for_other_machines_needs_the_token_for_everything(two_runs: Path) -> None:
    get = ask(two_runs, is_open=True)
    assert get("/").status_code == 200  # the page itself says nothing about a run
    for path in ("runs", "overview?run=ds2", "curves?run=ds2", "events?run=ds2", "health?run=ds2"):
        assert get(f"/api/{path}").status_code == 401
    assert get("/api/runs", authorization=BEARER).status_code == 200
    assert get("/api/runs", host="10.1.2.3:8750", authorization=BEARER).status_code == 200


def test_a_foreign_origin_or_host_is_refused(two_runs: Path) -> None:
    get = ask(two_runs)
    assert get("/api/runs", origin="http://localhost").status_code == 200
    for origin in ("http://evil.example", "null", "http://localhost:81", "http://localhost.evil"):
        assert get("/api/runs", origin=origin).status_code == 403
    for host in ("evil.example", "localhost.evil.example", "10.0.0.1", ""):
        assert get("/api/runs", host=host).status_code == 421
    assert get("/", "POST").status_code == 405


def test_no_path_leads_out_of_the_directory(tmp_path: Path, two_runs: Path) -> None:
    inside = tmp_path / "inside"
    copy_run(two_runs / "ds2", inside / "run")
    outside = copy_run(two_runs / "ds2", tmp_path / "secret")
    (inside / "link").symlink_to(outside)
    (inside / "file").mkdir()
    (inside / "file" / "run.toml").symlink_to(outside / "run.toml")
    get = ask(inside)
    for name in (
        "../secret",
        "..",
        "run/../../secret",
        "/etc",
        str(outside),
        "link",
        "file",
        "run/",
        "%2e%2e/secret",
        "run\x00",
        "",
        "x" * 1001,
    ):
        answer = (
            get("/api/overview", x="y")
            if name == ""
            else get(f"/api/overview?run={name}".replace("\x00", "%00"))
        )
        assert answer.status_code == 400 and "secret" not in answer.text
    for path in (
        "/assets/../application.py",
        "/assets/%2e%2e%2fapplication.py",
        "/assets/x.py",
        "/assets/uplot.LICENSE",
    ):
        assert get(path).status_code == 404
    assert RunLibrary(inside).names() == ["run"]


def test_a_huge_query_is_refused(two_runs: Path) -> None:
    get = ask(two_runs)
    assert get(f"/api/decisions?run=ds2&text={'x' * 5000}").status_code == 414
    assert get(f"/{'x' * 2000}").status_code == 414
    assert get("/api/curves?run=ds2&points=999999999").status_code == 200
    for wrong in ("points=x", "from=nan", "to=inf", "from=1e999"):
        assert get(f"/api/curves?run=ds2&{wrong}").status_code == 400
    assert get("/api/decisions?run=ds2&limit=99999999&kind=all").json()["next"] is not None


def test_a_journal_that_ends_in_half_a_line_is_shown_as_far_as_it_goes(
    tmp_path: Path, two_runs: Path
) -> None:
    run = copy_run(two_runs / "ds2", tmp_path / "run")
    path = run / "journal.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:-200])
    get = ask(tmp_path)
    assert get("/api/overview?run=run").json()["ticks"] == 119
    path.write_bytes(data)  # the writer completes its line
    assert get("/api/overview?run=run").json()["ticks"] == 120
    path.write_bytes(b"")
    assert get("/api/overview?run=run").json()["ticks"] == 0
    assert get("/api/tick?run=run").json() == {"graph": None, "story": None, "number": None}
    assert get("/api/curves?run=run").json()["times"] == []


def test_hostile_names_stay_text(tmp_path: Path, two_runs: Path) -> None:
    run = copy_run(two_runs / "ds2", tmp_path / HOSTILE.replace("/", "_"))
    rename_operator(run, "mapper", HOSTILE)
    get = ask(tmp_path)
    name = get("/api/runs").json()["runs"][0]["name"]
    answer = get(f"/api/tick?run={name}&at=20")
    assert HOSTILE in [node["name"] for node in answer.json()["graph"]["nodes"]]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_policy_file_of_a_foreign_run_is_not_executed(tmp_path: Path, two_runs: Path) -> None:
    run = copy_run(two_runs / "ds2", tmp_path / "run")
    evil, proof = tmp_path / "evil.py", tmp_path / "proof"
    evil.write_text(f"open({str(proof)!r}, 'w')\n")
    for name in ("run.toml", "journal.jsonl"):
        text = (run / name).read_text()
        (run / name).write_text(text.replace('"ds2"', json.dumps(str(evil))))
    get = ask(tmp_path)
    for path in (
        "overview?run=run",
        "tick?run=run&at=20",
        "decisions?run=run",
        "replay?run=run&policy=ds2",
    ):
        assert get(f"/api/{path}").status_code == 200
    assert not proof.exists()


def test_rules_of_addresses(tmp_path: Path) -> None:
    assert not make_rules("localhost").is_open and make_rules("10.0.0.1").is_open
    assert make_rules("0.0.0.0", names=["ops.example"]).allows_host("ops.example:80")
    with pytest.raises(InputError, match="16 characters"):
        make_rules("127.0.0.1", token="short")
    with pytest.raises(InputError, match="no such directory"):
        prepare_dashboard(tmp_path / "none")
    with pytest.raises(InputError, match="cannot listen"):
        prepare_dashboard(tmp_path, port=99999)


# --- size


@pytest.mark.slow
def test_a_hundred_thousand_ticks_answer_within_a_second_and_keep_their_peak(
    tmp_path: Path,
) -> None:
    make_runs(tmp_path, "ds2", minutes=30)
    stretch_journal(tmp_path / "ds2", 100_000)

    get = ask(tmp_path)
    began_s = time.process_time()  # other work on the machine does not count
    assert get("/api/overview?run=ds2").json()["ticks"] == 100_000
    first = get("/api/curves?run=ds2").json()
    assert time.process_time() - began_s < 1.0
    assert first["is_partial"] and len(first["times"]) == 1000
    began = time.monotonic()
    while get("/api/curves?run=ds2").json()["is_partial"]:
        assert time.monotonic() - began < 120
    assert time_call(lambda: get("/api/curves?run=ds2&points=1000"), 1.0) < 1.0
    curves = get("/api/curves?run=ds2&points=1000").json()
    assert len(curves["times"]) == 1000
    assert max(curves["run"]["backlog"]) == pytest.approx(1e12)
    for at in np.linspace(0, curves["end_s"], 7):
        tick = f"/api/tick?run=ds2&at={at}"
        assert time_call(lambda tick=tick: get(tick), 1.0) < 1.0
        answer = get(tick).json()
        assert answer["at"] <= max(at, 15.0)


def test_the_end_of_a_long_journal_is_listed_while_its_beginning_is_read(tmp_path: Path) -> None:
    make_runs(tmp_path, "ds2", minutes=30)
    stretch_journal(tmp_path / "ds2", 6000)
    ticks = read_journal(tmp_path / "ds2" / "journal.jsonl").ticks
    changes = [t.at for t in ticks if t.decision and t.decision.is_change]
    get = ask(tmp_path)
    answer = get("/api/decisions?run=ds2&limit=100").json()
    # only the last thousand ticks were looked through, and the list says where it goes on
    assert [entry["at"] for entry in answer["entries"]] == [
        at for at in changes[::-1] if at > ticks[4999].at
    ]
    seen = [entry["at"] for entry in answer["entries"]]
    while answer["next"] is not None:
        answer = get(f"/api/decisions?run=ds2&limit=100&before={answer['next']}").json()
        seen += [entry["at"] for entry in answer["entries"]]
    assert seen == changes[::-1]


def test_a_request_interrupts_the_reading_of_a_long_journal(tmp_path: Path) -> None:
    make_runs(tmp_path, "ds2", minutes=30)
    stretch_journal(tmp_path / "ds2", 6000)
    reader = RunLibrary(tmp_path).reader("ds2")
    has_begun, read = threading.Event(), reader.index.read

    def read_slowly(first: int, end: int) -> list[Any]:
        has_begun.set()
        time.sleep(0.2)
        return read(first, end)

    reader.index.read = read_slowly  # type: ignore[method-assign]
    thread = threading.Thread(target=reader.update, args=(60.0,))
    thread.start()
    has_begun.wait(10)
    with reader.open():
        assert not reader.is_complete
    thread.join(10)
    assert not thread.is_alive() and 0 < len(reader.columns) < 6000


def test_the_memory_of_a_run_is_bounded_and_the_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_runs(tmp_path, "ds2", minutes=30)
    stretch_journal(tmp_path / "ds2", 6000)
    monkeypatch.setattr(run_reader, "MAX_NUMBERS", 20_000)
    reader = RunLibrary(tmp_path).reader("ds2")
    reader.update(60.0)
    assert reader.is_full and reader.is_complete
    read = len(reader.columns)
    assert read * len(reader.columns.names) < 20_000 + 250 * len(reader.columns.names)
    get = ask(tmp_path)
    while get("/api/overview?run=ds2").json()["is_partial"]:
        pass
    assert any("only its first" in text for text in get("/api/health?run=ds2").json()["warnings"])
    # a tick beyond is still found
    assert get("/api/tick?run=ds2").json()["number"] == 5999


def test_only_the_runs_that_were_used_last_are_kept(tmp_path: Path, two_runs: Path) -> None:
    for number in range(MAX_READERS + 2):
        copy_run(two_runs / "ds2", tmp_path / str(number))
    library = RunLibrary(tmp_path)
    first = library.reader("0")
    assert library.reader("0") is first
    for number in range(1, MAX_READERS + 1):
        library.reader(str(number))
    assert library.reader("0") is not first
