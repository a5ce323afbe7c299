"""The kernel for encrypted subscriptions equals brute force in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pubsub.vector_instructions import find_wide_multiply_adds, needs_wide_vectors

from penstock.errors import InputError
from penstock.pubsub.arrays import Doubles
from penstock.pubsub.kernels.backend import Backend, default_backend
from penstock.pubsub.kernels.half_space_match import BLOCK, find_pairs, match_points
from penstock.pubsub.kernels.half_space_source import load_kernel
from penstock.pubsub.kernels.half_spaces import HalfSpaces, build_half_spaces, vector_size

SIZES = [0, 1, 2, 63, 64, 65, 127, 130]


def draw_units(random: np.random.Generator, *shape: int) -> Doubles:
    vectors = random.normal(size=shape)
    # so that many boxes match
    vectors[..., 0] = np.abs(vectors[..., 0]) + 1
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def brute_force(spaces: HalfSpaces, points: Doubles) -> list[list[int]]:
    lists = []
    for point in points:
        matches = (spaces.tests @ point > 0).all(axis=1) & spaces.alive
        lists.append(list(dict.fromkeys(spaces.owners[matches].tolist())))
    return lists


def check(counts: list[int], points: int, attributes: int, seed: int, backend: Backend) -> None:
    """Compare for subscriptions with so many boxes each, before and after some are removed."""
    random = np.random.default_rng(seed)
    size = vector_size(attributes)
    numbers = random.permutation(1000)[: len(counts)].tolist()
    boxes = [draw_units(random, count, 2 * attributes, size) for count in counts]
    spaces = build_half_spaces(dict(zip(numbers, boxes, strict=True)), attributes)
    block = draw_units(random, points, size)
    for kept in (spaces, spaces.without(numbers[::3]), spaces.without(numbers)):
        lists = match_points(kept, block, backend).to_arrow().to_pylist()
        assert lists == brute_force(kept, block)


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(0, 16), max_size=12),
    points=st.integers(0, 5),
    seed=st.integers(0, 2**32),
)
@pytest.mark.parametrize("backend", Backend)
def test_kernels_equal_brute_force(
    backend: Backend, counts: list[int], points: int, seed: int
) -> None:
    check(counts, points, 2, seed, backend)


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("boxes", SIZES)
def test_the_last_tile_may_have_any_size(boxes: int, backend: Backend) -> None:
    check([1] * boxes, 3, 2, boxes, backend)


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [1, 3, 8])
def test_compiled_kernels_of_other_sizes_equal_brute_force(attributes: int) -> None:
    check([1, 16, 3] * 20, BLOCK + 1, attributes, 7, Backend.NUMBA)


def test_a_block_where_everything_matches_needs_a_second_call() -> None:
    test = np.zeros((1, 4, 6))
    test[:, :, 0] = 1
    spaces = build_half_spaces(dict.fromkeys(range(100), test), 2)
    points = np.tile(np.eye(6)[0], (BLOCK + 3, 1))
    publications, numbers = find_pairs(spaces, points[:3])
    assert len(publications) == len(numbers) == 300
    for backend in Backend:
        lists = match_points(spaces, points, backend)
        assert lists.to_arrow().to_pylist() == [list(range(100))] * (BLOCK + 3)


@pytest.mark.parametrize("backend", Backend)
def test_double_precision_decides_what_single_precision_cannot(backend: Backend) -> None:
    tests = np.zeros((4, 4, 6))
    tests[:, :, 0] = 1
    # products with (0, 1, 0 ...) of +-1e-12: below what single precision tells apart
    for box, shift in enumerate((1e-12, -1e-12, 3e-9, -3e-9)):
        tests[box, 2] = [np.sqrt(1 - shift**2), shift, 0, 0, 0, 0]
        tests[box, [0, 1, 3]] = [0, 1, 0, 0, 0, 0]
    spaces = build_half_spaces(dict(enumerate(tests[:, None])), 2)
    point = np.array([[0.0, 1, 0, 0, 0, 0]])
    assert match_points(spaces, point, backend).to_arrow().to_pylist() == [[0, 2]]


@pytest.mark.parametrize("backend", Backend)
def test_a_product_of_zero_is_no_match(backend: Backend) -> None:
    spaces = build_half_spaces({5: np.tile(np.eye(6)[0], (1, 4, 1))}, 2)
    assert match_points(spaces, np.eye(6)[1:2], backend).to_arrow().to_pylist() == [[]]


@pytest.mark.parametrize("bad", [0.0, 2.0, np.nan, np.inf])
def test_what_no_client_has_encrypted_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match="no encrypted vector"):
        build_half_spaces({1: np.full((1, 4, 6), bad)}, 2)


def test_the_margin_is_above_every_error_of_single_precision() -> None:
    random = np.random.default_rng(0)
    for attributes in (1, 4, 8, 16):
        size = vector_size(attributes)
        points, tests = draw_units(random, 2000, size), draw_units(random, 500, size)
        error = points.astype("f4") @ tests.T.astype("f4") - points @ tests.T
        margin = build_half_spaces({}, attributes).margin
        assert np.abs(error).max() < margin == np.float32((size + 3) / 2**24)


@pytest.mark.slow
@needs_wide_vectors
@pytest.mark.parametrize("attributes", [4, 8])
def test_the_compiler_uses_vector_instructions(attributes: int) -> None:
    check([1] * 64, 2, attributes, 0, Backend.NUMBA)
    kernel = load_kernel(vector_size(attributes), 2 * attributes)
    wide = find_wide_multiply_adds(kernel)
    # all products of a pair of publications, but for the first of each sum
    assert len(wide) >= 2 * attributes * (vector_size(attributes) - 1)


def test_numba_is_the_default_if_it_is_installed() -> None:
    assert default_backend() is Backend.NUMBA
