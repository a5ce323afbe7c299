"""The limit of arithmetic counts operations that the machine really does."""

import numpy as np
import pytest
from tests.pubsub.vector_instructions import find_wide_multiply_adds, needs_wide_vectors

from penstock.pubsub.bench.arithmetic_limit import (
    CHAINS,
    DEPTH,
    compile_chain,
    make_product_call,
    write_chain_source,
)


def test_a_matrix_product_is_counted() -> None:
    call, operations = make_product_call()
    product = call()
    assert isinstance(product, np.ndarray)
    # a multiply-add is two operations, and each entry needs as many as a row is long
    assert operations == 2 * product.size * product.shape[0]


def test_the_source_multiplies_and_adds_as_often_as_it_says() -> None:
    assert write_chain_source().count(" * x + y") == CHAINS * DEPTH


@pytest.mark.slow
@needs_wide_vectors
def test_the_compiler_removes_no_operation() -> None:
    assert len(find_wide_multiply_adds(compile_chain())) >= CHAINS * DEPTH
