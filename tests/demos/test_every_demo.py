"""What holds for all pipelines that come along."""

import pickle
import subprocess
import sys
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from penstock.engines.simulator import library
from penstock.errors import InputError
from penstock.runs.build_args import demo_names, load_pipeline

NAMES = demo_names()
#: Those that papers run, and that are simulated, too.
SIMULATED = ("dns", "images", "tweets", "tweets-complex")


def module(name: str) -> object:
    return import_module(f"penstock.demos.{name.replace('-', '_')}")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_found_by_name_and_nothing_is_wrong_with_it(name: str) -> None:
    pipeline = load_pipeline(name)
    assert pipeline.name == name
    pipeline.check()


def test_all_are_there() -> None:
    assert {*SIMULATED, "words", "clicks", "tweets-authors"} <= set(NAMES)


@pytest.mark.parametrize("name", SIMULATED)
def test_it_has_the_shape_of_the_simulated_one(name: str) -> None:
    ours = load_pipeline(name).check()
    simulated = library.load_pipeline(name).topology
    assert {op: set(feeders) for op, feeders in ours.upstream.items()} == {
        op: set(feeders) for op, feeders in simulated.upstream.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_any_part_of_its_records_is_made_again(name: str) -> None:
    due = pa.array(np.arange(300) * 1000, pa.timestamp("us", tz="UTC"))
    for feed in load_pipeline(name).feeds.values():
        whole = feed.make(1000, due)
        for begin, end in ((0, 300), (17, 18), (120, 290)):
            assert feed.make(1000 + begin, due[begin:end]).equals(whole.slice(begin, end - begin))
        assert feed.make(1000, due[:0]).schema.equals(whole.schema)


@pytest.mark.parametrize("name", NAMES)
def test_its_functions_can_be_sent_to_other_processes(name: str) -> None:
    for operator in load_pipeline(name).operators.values():
        sent = cloudpickle.dumps(operator.function)
        assert callable(pickle.loads(sent))
        # no table travels along, and of a model only what it has learnt
        assert len(sent) < 20_000
        assert len(cloudpickle.dumps(operator.options.resource)) < 500_000


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_built_is_told_by_the_name_of_the_number(name: str) -> None:
    with pytest.raises(InputError, match="service_s: must be at least 0, got -1"):
        module(name).build(service_s=-1)  # type: ignore[attr-defined]


def test_declaring_them_loads_neither_spark_nor_a_model() -> None:
    code = "import sys\n"
    code += "".join(f"import {module(name).__name__}\n" for name in NAMES)  # type: ignore[attr-defined]
    code += "print([name for name in ('pyspark', 'sklearn') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
