"""Grids: what is read from a file, and what is refused before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.lab.grid.grid import BACKENDS, check_grid, parse_grid, read_grid
from penstock.runs.spec import SimulationSpec
from penstock.runs.spec_fields import check_field

SHIPPED = Path(__file__).parents[3] / "experiments" / "policies-on-cosine.toml"


def grid(**axes: Any) -> Any:
    return parse_grid({"grid": axes})


def test_every_choice_meets_every_other_one_for_every_seed() -> None:
    found = grid(query=["q1", "q11"], policy=["ds2", "dhalion", "flink"], seeds=4)
    assert [cell.name for cell in found.cells[:3]] == [
        "q1-cosine-ds2", "q1-cosine-dhalion", "q1-cosine-flink",
    ]  # fmt: skip
    assert len(found.cells) == 6
    for cell in found.cells:
        assert [spec.seed for spec in cell.specs] == [1066, 1067, 1068, 1069]


def test_an_empty_grid_is_the_published_run() -> None:
    (cell,) = parse_grid({}).cells
    assert cell.specs == (SimulationSpec(),)


def test_a_cell_has_what_all_have_and_what_it_chose() -> None:
    data = {
        "name": "mine",
        "base": {"engine": "spark", "minutes": 30, "params": {"a": 1, "b": 2}, "initial": 3},
        "grid": {"policy": [{"policy": "hpa-cpu", "params": {"b": 5}}], "seeds": [7]},
    }
    found = parse_grid(data)
    assert found.name == "mine"
    assert found.runs == {
        "q1-cosine-hpa-cpu_b=5": (
            SimulationSpec(
                engine="spark", minutes=30, policy="hpa-cpu", params={"a": 1, "b": 5},
                initial=3, seed=7,
            ),
        )
    }  # fmt: skip


def test_lists_within_tables_are_choices_too() -> None:
    target = {"policy": "hpa-cpu", "params": {"target": [0.5, 0.7]}}
    found = grid(policy=["ds2", target], guards={"cooldown_s": [60, 300], "budget": 50})
    assert [cell.label for cell in found.cells] == [
        "ds2, cooldown_s=60", "ds2, cooldown_s=300",
        "hpa-cpu target=0.5, cooldown_s=60", "hpa-cpu target=0.5, cooldown_s=300",
        "hpa-cpu target=0.7, cooldown_s=60", "hpa-cpu target=0.7, cooldown_s=300",
    ]  # fmt: skip
    assert found.cells[-1].specs[0].params == {"target": 0.7}
    assert found.cells[-1].specs[0].guards == {"cooldown_s": 300, "budget": 50}


def test_a_label_replaces_what_a_choice_is_called() -> None:
    params = {"target": [0.5, 0.7], "tolerance": 0.1}
    found = grid(policy=[{"policy": "hpa-cpu", "params": params, "label": "patient"}])
    assert [cell.label for cell in found.cells] == ["patient target=0.5", "patient target=0.7"]


def test_a_number_by_operator_is_one_value() -> None:
    per_operator = {"source": 3, "sink": 1}
    (cell,) = grid(policy=[{"policy": "static", "params": {"parallelism": per_operator}}]).cells
    assert cell.specs[0].params == {"parallelism": per_operator}
    assert cell.label == "static parallelism=source:3,sink:1"


def test_numbers_of_the_profile_are_named_with_their_section() -> None:
    for profile in ({"monitor": {"busy_sees": [0.6, 1.0]}}, {"monitor.busy_sees": [0.6, 1.0]}):
        found = grid(profile=profile)
        assert [c.specs[0].profile["monitor.busy_sees"] for c in found.cells] == [0.6, 1.0]
    one = parse_grid({"base": {"profile": {"monitor": {"busy_sees": 1.0}}}}).cells[0]
    assert one.specs[0].profile == {"monitor.busy_sees": 1.0}


def test_cells_that_meet_the_same_load_form_a_group() -> None:
    slow = {"workload": "cosine", "workload_params": {"period": 120}, "label": "slow wave"}
    found = grid(workload=["cosine", slow], policy=["ds2", "flink"], engine=["flink", "spark"])
    groups = {cell.group for cell in found.cells}
    assert groups == {"q1, cosine", "q1, slow wave"}
    assert [c.label for c in found.cells if c.group == "q1, slow wave"] == [
        "ds2, flink", "ds2, spark", "flink, flink", "flink, spark",
    ]  # fmt: skip


def test_a_query_may_bring_its_own_load_and_start() -> None:
    third = {"query": "q3", "initial": 10, "workload_params": {"mean": 18000}}
    found = grid(query=["q1", third])
    assert found.cells[1].group == "q3 initial=10 mean=18000, cosine"


def test_names_fit_into_file_names() -> None:
    (cell,) = grid(workload="constant(rate=5) for 3 then dns").cells
    assert cell.name == "q1-constant_rate=5_for_3_then_dns-ds2"
    assert cell.specs[0].workload == "constant(rate=5) for 3 then dns"


@pytest.mark.parametrize(
    ("data", "field", "problem", "hint"),
    [
        ({"gird": {}}, "gird", "unknown field", "did you mean 'grid'?"),
        ({"grid": {"polices": ["ds2"]}}, "grid.polices", "unknown", "did you mean 'policy'?"),
        ({"base": {"seed": 3}}, "base.seed", "unknown", "seeds = ... belongs into [grid]"),
        ({"base": {"minutes": "90"}}, "base.minutes", "must be a number above 0, got '90'", ""),
        ({"base": []}, "base", "must be a table, got []", ""),
        ({"name": "//"}, "name", "must be a text", ""),
        ({"grid": {"policy": []}}, "grid.policy", "at least one value", ""),
        ({"grid": {"policy": ["ds2", 3]}}, "grid.policy[1]", "must be a name, got 3", ""),
        ({"grid": {"policy": [{"params": {}}]}}, "grid.policy", "must say policy = ...", ""),
        ({"grid": {"policy": {"policy": "ds2", "guard": {}}}}, "grid.policy.guard", "unknown",
         "did you mean 'guards'?"),
        ({"grid": {"policy": {"policy": "ds2", "label": 3}}}, "grid.policy.label", "a text", ""),
        ({"grid": {"params": [0.5]}}, "grid.params", "must be a table", ""),
        ({"grid": {"params": {"target": []}}}, "grid.params.target", "at least one", ""),
        ({"grid": {"interval_s": [0]}}, "grid.interval_s", "above 0, got 0", ""),
        ({"grid": {"initial": [{"initial": {"map": 0}}]}}, "grid.initial", "replicas", ""),
        ({"grid": {"seeds": 0}}, "grid.seeds", "how many, or a list of seeds, got 0", ""),
        ({"grid": {"seeds": [1, 1]}}, "grid.seeds", "different from each other", ""),
        ({"grid": {"seeds": True}}, "grid.seeds", "got True", ""),
        ({"grid": {"seeds": 600_000}}, "grid", "at most 500000 runs, got 600000", ""),
        ({"grid": {"policy": ["ds2", "ds2"]}}, "grid", "holds 'q1-cosine-ds2' twice", ""),
        ({"grid": {"policy": [{"policy": "ds2", "label": "flink"}, "flink"]}}, "grid",
         "two different cells called 'q1-cosine-flink'", "label"),
        ({"grid": {"policy": {"policy": "ds2", "engine": "spark"}, "engine": "flink"}},
         "grid.engine", "sets engine, which grid.policy sets too", ""),
        ({"grid": {"policy": {"policy": "ds2", "minutes": 5}}}, "grid.policy",
         "must not set minutes", "the same load"),
    ],
)  # fmt: skip
def test_mistakes_are_named(data: dict[str, Any], field: str, problem: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_grid(data)
    assert caught.value.field == field
    assert problem in caught.value.problem and hint in caught.value.hint


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({"policy": ["ds2", "ds3"]}, "g.toml, cell q1-cosine-ds3: policy: unknown policy 'ds3'"),
        ({"query": "q99"}, "cell q99-cosine-ds2: query: unknown query 'q99'"),
        ({"workload": "cosin"}, "cell q1-cosin-ds2: workload: unknown workload 'cosin'"),
        ({"engine": "flnk"}, "engine: unknown engine 'flnk'"),
        ({"mode": "slots"}, "mode: must be operator or reactive"),
        ({"guards": {"cooldown": 3}}, "cooldown: unknown guard"),
        ({"params": {"active": "no such"}}, "unknown parameter of ds2"),
        ({"profile": {"monitor": {"busy": 1}}}, "busy"),
        ({"initial": {"initial": {"maper": 3}}}, "initial.maper: unknown operator"),
    ],
)
def test_names_and_bounds_are_checked_before_the_first_run(
    axes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        check_grid(grid(**axes), "g.toml")
    assert expected in str(caught.value) and str(caught.value).startswith("g.toml, cell q")


def test_what_only_a_policy_can_check_is_asked_of_it() -> None:
    bad = grid(policy={"policy": "static", "params": {"parallelism": {"sourc": 3}}})
    with pytest.raises(InputError, match=r"cell q1-.*: .*no operator 'sourc'"):
        check_grid(bad)


def test_files_are_named_in_errors(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    with pytest.raises(InputError, match=r"mine\.toml: there is no such file"):
        read_grid(file)
    file.write_text("grid = [")
    with pytest.raises(InputError, match=r"mine\.toml: not TOML: Invalid value"):
        read_grid(file)
    file.write_text("[base]\nquerry = 'q1'")
    with pytest.raises(InputError, match=r"mine\.toml: base\.querry: unknown field"):
        read_grid(file)
    file.write_text("[grid]\nquery = 'q1'")
    assert read_grid(file).name == "mine"


def test_the_grid_that_ships_can_run() -> None:
    found = read_grid(SHIPPED)
    assert len(found.cells) == 12 and len(found.cells[0].specs) == 5
    check_grid(found)


def test_every_field_of_a_run_can_be_written_down() -> None:
    fields = {field for kind in BACKENDS.values() for field in {*kind.fields} - {*kind.aliases}}
    for field in fields:
        with pytest.raises(InputError, match="must be"):
            check_field(field, [], "here")
