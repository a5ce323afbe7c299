"""Files of the first version of each format are still read; the numbers are those recorded."""

import json
import shutil
from pathlib import Path

import pytest

from penstock.core.snapshot_json import parse_snapshot
from penstock.engines.microbatch.host_table import HostTable
from penstock.errors import InputError
from penstock.prometheus.metric_map import load_map, parse_map
from penstock.pubsub.spaces.space import parse_space, read_space
from penstock.pubsub.spaces.space_key import read_space_key
from penstock.runs.control_file import CONTROL, ControlFile

RECORDED = Path(__file__).parent / "recorded" / "formats-v1"


def recorded_json(name: str) -> dict[str, object]:
    """A recorded file with one JSON object."""
    data: dict[str, object] = json.loads((RECORDED / name).read_text(encoding="utf-8"))
    return data


def test_a_snapshot() -> None:
    snapshot = parse_snapshot(recorded_json("snapshot.jsonl"))
    parse = snapshot.operators["parse"]
    assert (snapshot.at, parse.requested, parse.max_parallelism, parse.queue) == (30, 5, 8, 900)
    assert parse.votes is not None and parse.votes.copies == 1


def test_a_table_of_hosts() -> None:
    table = HostTable.from_json(recorded_json("hosts.json"))
    assert (table.hosts, table.started) == (("h1", "h3"), 3)
    assert table.pins("match") == {0: 0, 1: 1}


def test_requests_of_people(tmp_path: Path) -> None:
    shutil.copy(RECORDED / "control.jsonl", tmp_path / CONTROL)
    requests = [request for _, request in ControlFile(tmp_path).read_new()]
    assert [(each.who, each.action) for each in requests] == [
        ("ann", "pause"),
        ("ann", "pin"),
        ("bob", "bounds"),
    ]
    assert (requests[1].replicas, requests[2].minimum, requests[2].maximum) == (3, 1, 4)


def test_a_map_of_metrics() -> None:
    assert load_map(str(RECORDED / "map.toml")).queries.keys() >= {"input_rate", "busy"}


def test_a_space_and_its_key() -> None:
    space = read_space(RECORDED / "space.toml")
    assert (space.scheme, space.paths) == ("aspe", ("price", "symbol"))
    assert read_space_key(RECORDED / "space.key").space == space


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(InputError):
        parse_snapshot(recorded_json("snapshot.jsonl") | {"version": 2})
    with pytest.raises(InputError):
        HostTable.from_json(recorded_json("hosts.json") | {"version": 2})
    with pytest.raises(InputError):
        parse_map({"version": 2}, "map", {})
    with pytest.raises(InputError):
        parse_space({"format": 2})
