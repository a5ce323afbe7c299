"""Numbers of one line of a journal: hosts beside operators, votes, and damaged fields."""

from penstock.runs.tick_numbers import tick_numbers

HOSTS = {
    "h1": {"slices": {"match/0": {"cpu": 0.4}, "match/1": {"cpu": 0.2}}},
    "h2": {"slices": {"match/2": {"cpu": 0.1}}},
}


def test_a_run_on_spark_has_hosts_beside_its_operators() -> None:
    numbers = tick_numbers(
        {
            "at": 5.0,
            "running": {"match": 2},
            "snapshot": {"operators": {"match": {"busy": 0.5}}, "hosts": HOSTS},
            "decision": {"hosts": {"current": 2, "wanted": 3}, "moves": [{}, {}]},
            "applied": True,
        },
        {},
    )
    assert numbers["busy", "match"] == 0.5
    assert numbers["hosts", ""] == 2 and numbers["moves", ""] == 2
    assert round(numbers["host_load_max", ""], 9) == 0.6
    assert round(numbers["host_load_mean", ""], 9) == 0.35
    assert numbers["host_load_min", ""] == 0.1
    # hosts are not added to replicas
    assert numbers["replicas", ""] == 2 and ("wanted_replicas", "") not in numbers


def test_moves_that_were_not_carried_out_do_not_count() -> None:
    data = {"snapshot": {"hosts": HOSTS}, "decision": {"moves": [{}]}, "applied": False}
    assert tick_numbers({"at": 1.0, **data}, {})["moves", ""] == 0


def test_votes_and_messages_add_up_over_operators() -> None:
    alone = {"votes": {"copies": 2, "stops": 1}, "messages": 7, "instances": {"ideal": 4}}
    on_spark = {"votes": {"copies": 1, "stops": 0}}
    numbers = tick_numbers({"snapshot": {"operators": {"a": alone, "b": on_spark}}}, {})
    assert {key: numbers[key, ""] for key in ("copies", "stops", "messages", "ideal")} == {
        "copies": 3,
        "stops": 1,
        "messages": 7,
        "ideal": 4,
    }
    assert numbers["messages", "a"] == 7 and ("messages", "b") not in numbers


def test_damaged_fields_are_unknown() -> None:
    for snapshot in (
        {"hosts": {"h1": 3, "h2": {"slices": {"a": 1, "b": {"cpu": "x"}}}}},
        {"operators": {"a": 3, "b": {"votes": [], "messages": "many", "instances": 1}}},
        {"hosts": [1]},
        7,
    ):
        numbers = tick_numbers({"at": 1.0, "snapshot": snapshot, "decision": 3}, {})
        assert not {"copies", "messages"} & {measure for measure, _ in numbers}
