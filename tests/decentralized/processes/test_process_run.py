"""Whole runs of real processes: nothing is lost, and every failure is named."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.decentralized.processes.lossy_node import BUG

from penstock.decentralized.node_state import Neighbours, NodePhase, NodeState
from penstock.decentralized.processes import fork_client, process_run
from penstock.decentralized.processes.frames import FrameReader, encode_frame
from penstock.decentralized.processes.handshake import LOOPBACK
from penstock.decentralized.processes.process_run import run_processes
from penstock.decentralized.processes.run_monitor import RunSample
from penstock.decentralized.processes.run_result import find_wrong_views
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.errors import InputError, RunError

COMMAND = [
    *(sys.executable, "-m", "penstock", "decentralized", "run"),
    *("--operators", "2", "--seconds", "60", "--min-actions", "0"),
]


def children_of(process: int) -> list[int]:
    """Return all processes below one, from /proc."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
    below, known = [], {process}
    while found := {p for p, parent in parents.items() if parent in known and p not in known}:
        known |= found
        below += sorted(found)
    return below


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(is_true: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_true():
        assert time.monotonic() < deadline_s, "it takes too long"
        time.sleep(0.05)


def free_ports(count: int) -> int:
    """Return the first of consecutive ports that nobody uses."""
    for first in range(20_000 + os.getpid() % 500 * 60, 60_000, 60):
        with suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind((LOOPBACK, port))
            return first
    raise AssertionError("no free ports")


@contextmanager
def command(*options: str) -> Iterator["subprocess.Popen[str]"]:
    """Start the command; 6 nodes and the process that forks them are there when it returns."""
    process = subprocess.Popen([*COMMAND, *options], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(children_of(process.pid)) >= 7)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_run_with_delays_loses_nothing_while_it_scales() -> None:
    spec = ProcessRunSpec(seconds=6, min_actions=20, interval_s=0.5, delay_ms=(0, 30), seed=5)
    samples: list[RunSample] = []
    result = run_processes(spec, samples.append)
    assert result.problems == ()
    assert len(result.actions) >= 20
    assert {action.kind for action in result.actions} == {"duplication", "deletion"}
    assert all(account.processed == result.sent > 100 for account in result.accounts)
    assert sum(result.messages.values()) == result.expected_messages
    assert result.peak_processes > 8
    assert result.started_processes == 8 + sum(action.copies for action in result.actions)
    assert samples == list(result.samples)
    loaded = [sample for sample in samples if sample.is_loaded and sample.offered]
    assert all(op.instances >= 1 for sample in loaded for op in sample.operators)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fifty_actions_with_delays_lose_nothing(seed: int) -> None:
    result = run_processes(ProcessRunSpec(seconds=30, min_actions=50, delay_ms=(0, 20), seed=seed))
    assert result.problems == ()
    assert len(result.actions) >= 50
    assert all(account.processed == result.sent > 1000 for account in result.accounts)
    assert sum(result.messages.values()) == result.expected_messages


@pytest.mark.slow
def test_a_run_that_scales_too_little_fails() -> None:
    spec = ProcessRunSpec(operators=1, seconds=1, min_actions=10**6, interval_s=0.5)
    (problem,) = run_processes(spec).problems
    assert "--min-actions is 1000000" in problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "problems"),
    [
        ("drop", ("count lost 1: 7", "sink lost 1: 7")),
        ("repeat", ("count repeated 1: 7", "sink repeated 1: 7")),
    ],
)
def test_a_run_finds_records_that_are_lost_or_repeated(
    bug: str, problems: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BUG, bug)
    monkeypatch.setattr(fork_client, "SERVER", "tests.decentralized.processes.lossy_node")
    monkeypatch.setattr(process_run, "_PATIENCE_S", 1.5)
    result = run_processes(ProcessRunSpec(operators=2, seconds=2, min_actions=0, interval_s=60))
    assert result.problems == (*problems, "the counts at the sink are wrong")


@pytest.mark.slow
def test_processes_end_with_a_parent_that_is_killed() -> None:
    with command() as process:
        children = children_of(process.pid)
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(is_alive, children)), timeout_s=5)


@pytest.mark.slow
def test_processes_end_after_an_interrupt() -> None:
    with command() as process:
        children = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        wait_for(lambda: not any(map(is_alive, children)), timeout_s=5)


@pytest.mark.slow
def test_a_node_that_dies_is_named() -> None:
    with command() as process:
        wait_for(lambda: bool(process.stderr and process.stderr.readline()))
        _, *nodes = children = children_of(process.pid)
        os.kill(nodes[2], signal.SIGKILL)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 1
        line = errors.splitlines()[-1]
        assert f"(process {nodes[2]}) was killed by signal 9" in line
        assert line.startswith("error: node ")
        wait_for(lambda: not any(map(is_alive, children)), timeout_s=5)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "owner"), [(0, "the launcher"), (3, "node ")])
def test_a_port_that_is_taken_is_named(place: int, owner: str) -> None:
    first = free_ports(8)
    with socket.socket() as taken:
        taken.bind((LOOPBACK, first + place))
        taken.listen()
        problem = (
            rf"^{owner}.* cannot listen on port {first + place} of {LOOPBACK}: address.*--port"
        )
        with pytest.raises(RunError, match=problem):
            run_processes(ProcessRunSpec(operators=2, seconds=2, min_actions=0, port=first))


def listening_hosts(ports: range) -> set[str]:
    """Return the addresses that sockets with these ports listen on, as the kernel writes them."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    rows += [row.split() for row in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    local = [row[1].split(":") for row in rows if row[3] == "0A"]
    return {host for host, port in local if int(port, 16) in ports}


def knock(port: int) -> bytes:
    """Connect without the token; return what comes after the challenge."""

    async def run() -> bytes:
        stream, writer = await asyncio.open_connection(LOOPBACK, port)
        challenge = await FrameReader(stream).read()
        assert set(challenge) == {"name", "nonce"}
        proof = {"name": "parse-9@1", "nonce": "0", "proof": "0" * 64}
        writer.write(encode_frame(proof) + encode_frame(["record", [0, 0.0, {}, 1]]))
        answer = await stream.read()
        writer.close()
        return answer

    return asyncio.run(run())


@pytest.mark.slow
def test_strangers_are_refused_and_everything_listens_on_loopback_only() -> None:
    first = free_ports(8)
    knocks: list[bytes] = []
    hosts: set[str] = set()

    def visit() -> None:
        knocks.extend(knock(first + place) for place in (0, 1, 3))
        hosts.update(listening_hosts(range(first, first + 7)))

    def observe(sample: RunSample) -> None:
        if not threads:
            threads.append(threading.Thread(target=visit))
            threads[0].start()

    threads: list[threading.Thread] = []
    spec = ProcessRunSpec(operators=2, seconds=6, min_actions=0, interval_s=60, port=first)
    result = run_processes(spec, observe)
    for thread in threads:
        thread.join()
    assert knocks == [b"", b"", b""]
    assert hosts == {"0100007F"}
    assert result.strangers == 3
    assert result.problems == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"operators": 0}, "--operators"),
        ({"operators": 6}, "--operators"),
        ({"instances": 0}, "--instances"),
        ({"seconds": 0}, "--seconds"),
        ({"seconds": float("nan")}, "--seconds"),
        ({"delay_ms": (5, 1)}, "--delay-ms"),
        ({"delay_ms": (-1, 1)}, "--delay-ms"),
        ({"load": "waves"}, "--load"),
        ({"min_actions": -1}, "--min-actions"),
        ({"port": 80}, "--port"),
        ({"capacity": 0}, "--capacity"),
        ({"interval_s": 0}, "--interval"),
    ],
)
def test_a_wrong_spec_is_refused_by_the_name_of_its_option(
    change: dict[str, object], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        run_processes(ProcessRunSpec(**change))  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_spec_is_read_as_written() -> None:
    spec = ProcessRunSpec(operators=5, delay_ms=(1.5, 2.5), load="brownian", seed=9)
    assert ProcessRunSpec.from_json(spec.to_json()) == spec


def test_a_node_with_wrong_neighbours_is_found() -> None:
    def state(node: str, operator: int, after: set[str], before: set[str]) -> NodeState:
        neighbours = Neighbours(frozenset(after), frozenset(before))
        return NodeState(
            node=node, operator=operator, phase=NodePhase.ACTIVE, neighbours=neighbours
        )

    a, b = state("a-1@1", 0, {"b-1@2"}, set()), state("b-1@2", 1, set(), {"a-1@1"})
    assert find_wrong_views([a, b]) == []
    stale = state("a-1@1", 0, {"b-1@2", "b-2@3"}, set())
    assert find_wrong_views([stale, b]) == ["a-1"]
