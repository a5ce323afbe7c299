"""`penstock decide` and `penstock policies`, as a person uses them."""

import io
import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.control.registry import builtin_policies

SOURCE = {
    "upstream": [],
    "parallelism": 5,
    "max_parallelism": 80,
    "input_rate": 1000000.0,
    "output_rate": 1000000.0,
    "busy": 0.8,
    "idle": 0.2,
    "backpressured": 0.0,
    "cpu": 0.75,
    "queue": 0.0,
    "queue_growth": 0.0,
    "input_buffer": 0.1,
    "service_time_s": 0.000004,
    "service_scv": 1.0,
    "arrival_scv": 1.0,
}
LINE = {"at": 30.0, "offered": {"source": 1000000.0}, "operators": {"source": SOURCE}}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Run a command on a file of lines; returns exit code, stdout, stderr."""

    def call(lines: list, *args: str) -> tuple[int, str, str]:
        path = tmp_path / "run.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n")
        code = main(["decide", *args, str(path)])
        out, err = capsys.readouterr()
        return code, out, err.replace(str(tmp_path) + "/", "")

    return call


def test_the_documented_example_comes_out_to_the_letter(run) -> None:
    _, out, _ = run([LINE], "--policy", "ds2")
    assert out == (
        '{"at": 30.0, "policy": "ds2", "targets": {"source": '
        '{"current": 5, "wanted": 4, "reason": "rate-below-capacity"}}}\n'
    )


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(LINE) + "\n\n" + json.dumps(LINE)))
    assert main(["decide", "--policy", "threshold", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_guards_with_memory_count_lines_that_change_something(run) -> None:
    lines = [LINE | {"at": at} for at in (0.0, 15.0, 300.0)]
    _, out, _ = run(lines, "--policy", "ds2", "--guard", "cooldown_s=300")
    answers = [json.loads(line)["targets"]["source"] for line in out.splitlines()]
    assert [a["wanted"] for a in answers] == [4, 5, 4]
    assert answers[1]["reason"] == "cooling-down"
    assert answers[1]["proposal"] == 4


def test_bounds_hold_only_where_guards_are_asked_for(run) -> None:
    line = LINE | {"operators": {"source": SOURCE | {"max_parallelism": 2}}}
    assert '"wanted": 4' in run([line], "--policy", "ds2")[1]
    assert '"wanted": 2' in run([line], "--policy", "ds2", "--guard", "bounds=true")[1]


@pytest.mark.parametrize("policy", [p for p in builtin_policies() if p != "enforcer"])
def test_every_policy_explains_itself(run, policy: str) -> None:
    code, out, _ = run([LINE, LINE | {"at": 60.0}], "--policy", policy, "--explain")
    assert code == 0
    assert out.count("    measured  ") == 2
    assert "5 replicas running (at most 80)" in out
    assert "{" not in out


def test_an_explanation_tells_the_whole_story(run) -> None:
    line = {
        "at": 60,
        "offered": {"source": 1500},
        "operators": {
            "source": SOURCE | {"input_rate": 1000, "output_rate": 1000},
            "silent": {"parallelism": 3, "upstream": ["source"]},
        },
    }
    guards = ["--guard", "max_increase=2", "--guard", "overprovision=1.2"]
    out = " ".join(run([line], "--policy", "ds2", *guards, "--explain")[1].split())
    assert "takes 1,000 records/s" in out
    assert "1,000 / (0.8 busy x 5 replicas) = 250 records/s" in out
    assert "wanted = ceil(1,500 / 250) = 6" in out
    assert "proposal 6 replicas" in out
    assert "overprovision: 6 -> 8" in out
    assert "max_increase: 8 -> 7" in out
    assert "silent: stays at 3 replicas (metrics-missing)" in out
    assert "busy unknown" in out
    assert "without evidence nothing is changed" in out


def test_the_enforcer_in_json_and_in_words(run) -> None:
    slices = {"AP:1": (0.12, 1), "AP:2": (0.12, 1), "M:1": (0.5, 20)}
    others = {"EP:1": (0.13, 2), "EP:2": (0.1, 2), "M:2": (0.5, 20)}
    hosts = {
        name: {"slices": {s: {"cpu": c, "memory": m} for s, (c, m) in on.items()}}
        for name, on in (("h1", slices), ("h2", others))
    }
    lines = [{"at": at, "hosts": hosts} for at in (0.0, 30.0)]
    waiting, moving = [json.loads(x) for x in run(lines, "--policy", "enforcer")[1].splitlines()]
    assert waiting == {
        "at": 0.0,
        "policy": "enforcer",
        "hosts": {"current": 2, "wanted": 2},
        "moves": [],
        "reason": "waiting",
    }
    assert moving["hosts"] == {"current": 2, "wanted": 3}
    assert {m["slice"] for m in moving["moves"]} == {"AP:1", "AP:2", "EP:1", "EP:2"}
    out = run(lines, "--policy", "enforcer", "--explain")[1]
    assert "EP:1 from h2 to new-1" in out


@pytest.mark.parametrize(
    ("line", "args", "message"),
    [
        ("{nope", [], "run.jsonl:2: not JSON: Expecting property name"),
        ('{"at": NaN}', [], "run.jsonl:2: NaN is not a number"),
        ('{"at": 1, "at": 2}', [], "run.jsonl:2: at: stands twice in one object"),
        ("[" * 100_000, [], "run.jsonl:2: nested too deeply"),
        ('{"at": %s}' % ("9" * 5000), [], "run.jsonl:2: holds a number of thousands of digits"),
        ({"operators": {"a": {"parallelism": 1}}}, [], "run.jsonl:2: at: missing"),
        (LINE | {"at": 0.0}, [], "run.jsonl:2: at: must not go back, got 0 after 30"),
        (
            {"at": 40, "operators": {"a": {"parallelism": 1, "input_rate": -5}}},
            [],
            "run.jsonl:2: operators.a.input_rate: must be at least 0, got -5",
        ),
        (
            {"at": 40, "operators": {"a": {"parallelism": 1, "upstream": ["a"]}}},
            [],
            "run.jsonl:2: operators.a.upstream: operators form a cycle: a -> a",
        ),
        (
            {"at": 40, "operators": {n: {"parallelism": 1} for n in "abc"}},
            ["--guard", "budget=2"],
            "run.jsonl:2: budget: 2 cannot give each of 3 operators a replica",
        ),
        (
            {"at": 40, "hosts": {"h": {"slices": {}}}},
            [],
            "run.jsonl:2: operators: missing: ds2 decides about operators",
        ),
    ],
)
def test_a_bad_line_is_named_and_earlier_answers_are_kept(run, line, args, message) -> None:
    code, out, err = run([LINE, line], "--policy", "ds2", *args)
    assert code == 2
    assert len(out.splitlines()) == 1
    assert err.startswith(f"error: {message}")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (["--policy", "ds3"], "policy: unknown policy 'ds3'", "did you mean 'ds2'?"),
        (
            ["--policy", "threshold", "--param", "t_ot=5"],
            "t_ot: unknown parameter of threshold",
            "did you mean 't_out'?",
        ),
        (["--policy", "ds2", "--guard", "budgt=5"], "budgt: unknown guard", "'budget'"),
        (["--policy", "ds2", "--guard", "budget=0"], "budget: must be at least 1, got 0", ""),
        (["--policy", "ds2", "--param", "memory_s"], "--param: must be name=value", ""),
        (
            ["--policy", "hpa-cpu", "--param", "target=2"],
            "target: must be above 0 and at most 1, got 2",
            "",
        ),
    ],
)
def test_a_wrong_option_is_answered_before_anything_is_read(run, args, message, hint) -> None:
    code, out, err = run([LINE], *args)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert hint in err


def test_files_that_cannot_be_read(run, tmp_path: Path, capsys) -> None:
    assert main(["decide", "--policy", "ds2", str(tmp_path / "none.jsonl")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert run([], "--policy", "ds2")[0] == 2
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    assert main(["decide", "--policy", "ds2", str(tmp_path / "binary")]) == 2


def test_policies_are_listed_with_parameters(capsys) -> None:
    assert main(["policies"]) == 0
    out = capsys.readouterr().out
    for policy in builtin_policies().values():
        assert policy.summary in " ".join(out.split())
    assert "target=0.7" in out
    assert main(["policies", "--guards"]) == 0
    assert "overprovision" in capsys.readouterr().out


def test_policies_are_listed_as_json(capsys) -> None:
    assert main(["policies", "--json", "hpa-cpu"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["params"][0] == {
        "name": "target",
        "type": "float",
        "default": 0.7,
        "doc": "CPU share to aim for",
        "unit": "",
        "bounds": "above 0 and at most 1",
    }
    assert main(["policies", "--guards", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "overprovision"


def test_help_shows_examples(capsys) -> None:
    for command in ([], ["decide"], ["policies"]):
        with pytest.raises(SystemExit) as done:
            main([*command, "--help"])
        assert done.value.code == 0
        assert "examples:" in capsys.readouterr().out
