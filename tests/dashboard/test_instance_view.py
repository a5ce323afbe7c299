"""Replicas on Spark that decide alone: votes, but neither messages nor states."""

from penstock.control.loop import Tick
from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.vote_count import VoteCount
from penstock.dashboard.instance_view import view_instances
from penstock.engines.port import Status

STATUS = Status(at=1.0, requested=FrozenDict(), running=FrozenDict())


def measured(*operators: OperatorSnapshot) -> Tick:
    """Return a tick that has measured some operators."""
    by_name = FrozenDict({operator.name: operator for operator in operators})
    return Tick(at=1.0, status=STATUS, snapshot=Snapshot(at=1.0, operators=by_name))


def test_votes_on_spark_have_no_messages_and_a_native_operator_is_fixed() -> None:
    votes = VoteCount(before=2, after=3, voters=2, copies=1, load=40.0, capacity=50.0)
    view = view_instances(
        measured(
            OperatorSnapshot(name="map", parallelism=3, votes=votes),
            OperatorSnapshot(
                name="join", parallelism=2, votes=VoteCount(before=2, after=2, is_fixed=True)
            ),
            OperatorSnapshot(name="sink", parallelism=1),
        )
    )
    assert view is not None
    alone, fixed = view["rows"]
    assert (alone["operator"], alone["active"], alone["copies"], alone["stops"]) == ("map", 3, 1, 0)
    assert alone["messages"] is alone["starting"] is alone["ideal"] is None
    assert not alone["is_fixed"] and fixed["is_fixed"]


def test_damaged_fields_are_unknown_and_a_policy_has_no_instances() -> None:
    odd = FrozenDict({"messages": "many", "instances": 3})
    view = view_instances(measured(OperatorSnapshot(name="a", parallelism=2, extra=odd)))
    assert view is not None and view["rows"][0]["messages"] is None
    assert view["rows"][0]["active"] == 2 and view["rows"][0]["copies"] is None
    assert view_instances(measured(OperatorSnapshot(name="a", parallelism=2))) is None
    assert view_instances(None) is None
