"""What a session allows is known before anything starts."""

import pytest

from penstock.engines.attached.session_check import check_session
from penstock.errors import InputError

ALLOCATION = {"spark.dynamicAllocation.enabled": "true"}


def test_a_local_session_has_no_executors():
    rules = check_session("local[4]", {}, (1, 4), 1)
    assert rules.why_not.startswith("local[4] has no executors")


@pytest.mark.parametrize("master", ["local-cluster[4,1,1024]", "spark://host:7077", "yarn"])
def test_a_cluster_can_be_changed(master):
    assert check_session(master, {}, (1, 4), 1) == ("", False)


def test_dynamic_allocation_is_refused_with_a_hint():
    with pytest.raises(InputError) as error:
        check_session("yarn", ALLOCATION, (1, 4), 1)
    assert error.value.field == "spark"
    assert "dry-run" in error.value.hint


def test_dynamic_allocation_that_never_acts_is_no_conflict():
    never = {
        "spark.dynamicAllocation.schedulerBacklogTimeout": "3650d",
        "spark.dynamicAllocation.executorIdleTimeout": "3650d",
        "spark.decommission.enabled": "true",
    }
    assert check_session("yarn", ALLOCATION | never, (1, 4), 1).exits_alone


def test_more_executors_than_spark_cores_max_are_refused():
    with pytest.raises(InputError, match="has room for 2 executors") as error:
        check_session("spark://host:7077", {"spark.cores.max": "5"}, (1, 3), 2)
    assert error.value.field == "executors"
