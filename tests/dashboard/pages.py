"""Runs for tests of the dashboard, and an application over them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.dashboard.access import AccessRules
from penstock.dashboard.application import make_application
from penstock.dashboard.run_library import RunLibrary
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.timeline import ScalingTimeline
from penstock.decentralized.simulator.timeline_ticks import record_simulation, write_timeline
from penstock.lab.simulation import run_simulation
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

TOKEN = "a-token-of-this-test"
HOSTILE = "<script>alert(1)</script>"


def make_runs(root: Path, *policies: str, minutes: int = 30) -> Path:
    """Simulate a run for each policy below a directory."""
    for policy in policies:
        run_simulation(
            prepare_simulation(SimulationSpec(policy=policy, minutes=minutes)), root / policy
        )
    return root


def make_host_run(run: Path) -> Path:
    """Simulate a publish/subscribe service whose slices are on hosts."""
    spec = SimulationSpec(
        query="streamhub", engine="streamhub", policy="enforcer", workload="trapezoid", minutes=10
    )
    run_simulation(prepare_simulation(spec), run)
    return run


def make_instance_run(run: Path) -> ScalingTimeline:
    """Simulate three operators whose instances decide alone."""
    setup = DecentralizedSetup(operators=3, instances=4, steps=60)
    with record_simulation(run, setup) as record:
        timeline = simulate_setup(setup)
        write_timeline(record, timeline)
    return timeline


def rename_operator(run: Path, old: str, new: str) -> None:
    """Give an operator another name in all files of a run."""
    for name in ("journal.jsonl", "result.json"):
        path = run / name
        path.write_text(path.read_text().replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]))


def copy_run(run: Path, to: Path) -> Path:
    """Copy a run."""
    shutil.copytree(run, to)
    return to


def stretch_journal(run: Path, ticks: int) -> None:
    """Repeat the ticks of a journal until there are so many, with one peak in the middle."""
    path = run / "journal.jsonl"
    header, *lines = path.read_bytes().splitlines(keepends=True)
    data = [json.loads(line) for line in lines]
    length_s, written = data[-1]["at"], 0
    with path.open("wb") as stream:
        stream.write(header)
        while written < ticks:
            for tick in data[: ticks - written]:
                shift = (written // len(data)) * length_s
                at = tick["at"] + shift
                line = {**tick, "at": at}
                for key in ("snapshot", "decision"):
                    if key in tick:
                        line[key] = {**tick[key], "at": at}
                if written == ticks // 2:
                    line["records"] = {**tick["records"], "backlog": 10**12}
                stream.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
                written += 1


def rules(*, is_open: bool = False) -> AccessRules:
    """The rules of a server under the name localhost."""
    return AccessRules(token=TOKEN, hosts=frozenset({"localhost"}), is_open=is_open)


def ask(root: Path, *, is_open: bool = False) -> "Asker":
    """Return a client of an application without a socket."""
    return Asker(root, is_open=is_open)


class Asker:
    """Sends requests to an application, each in an event loop of its own."""

    def __init__(self, root: Path, *, is_open: bool = False) -> None:
        self._application = make_application(RunLibrary(root), rules(is_open=is_open))

    def __call__(
        self, path: str, method: str = "GET", body: bytes = b"", **headers: str
    ) -> httpx.Response:
        """Send one request; a header `x_y` is sent as `x-y`."""
        import anyio  # noqa: PLC0415

        given = {name.replace("_", "-"): value for name, value in headers.items()}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._application)  # type: ignore[arg-type]
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                return await client.request(method, path, content=body, headers=given)

        return anyio.run(send)


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with two simulated runs."""
    yield make_runs(tmp_path_factory.mktemp("dashboard"), "ds2", "dhalion")
