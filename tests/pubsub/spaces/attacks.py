"""Two attacks on the scheme aspe that succeed: `python -m tests.pubsub.spaces.attacks`."""

import math
import sys

import numpy as np
from tests.pubsub.factories import draw_ranges, make_encoder

from penstock.pubsub.arrays import Doubles, Integers

ATTRIBUTES, CELLS = 4, 2**16


def needed_publications(attributes: int, size: int) -> int:
    """How many known publications determine the decryption, up to a factor."""
    return math.ceil(((attributes + 1) * size - 1) / attributes)


def learn_decryption(vectors: Doubles, values: Doubles) -> Doubles:
    """Solve (B c)_i = x_i (B c)_last for the matrix B, from publications with known values."""
    count, size = values.shape[1], vectors.shape[1]
    equations = np.zeros((len(vectors), count, count + 1, size))
    for i in range(count):
        equations[:, i, i] = vectors
        equations[:, i, count] = -values[:, i, None] * vectors
    _, _, rows = np.linalg.svd(equations.reshape(-1, (count + 1) * size))
    return np.asarray(rows[-1].reshape(count + 1, size))


def decrypt(matrix: Doubles, vectors: Doubles) -> Doubles:
    """Return the values of publications."""
    products = vectors @ matrix.T
    return np.asarray(products[:, :-1] / products[:, -1:])


def recover_shape(vectors: Doubles, tests: Doubles) -> Doubles:
    """Return all values up to one affine map per attribute, from encrypted vectors alone.

    `tests` is (boxes, tests, components); two neighbouring tests are about one attribute.
    """
    attributes = tests.shape[1] // 2
    products = vectors @ tests.reshape(-1, tests.shape[2]).T
    left, weights, right = np.linalg.svd(products, full_matrices=False)
    rank = attributes + 1
    points = left[:, :rank] * weights[:rank]
    latent = right[:rank].T.reshape(len(tests), attributes, 2, rank)
    # the tests of an attribute span a plane; all planes share the line of the constant
    planes = [_basis(latent[:, i].reshape(-1, rank)) for i in range(attributes)]
    _, vectors_of_sum = np.linalg.eigh(sum(plane.T @ plane for plane in planes))
    line = vectors_of_sum[:, -1]
    values = [points @ _other_direction(plane, line) / (points @ line) for plane in planes]
    return np.stack(values, axis=1)


def _basis(rows: Doubles) -> Doubles:
    return np.asarray(np.linalg.svd(rows, full_matrices=False)[2][:2])


def _other_direction(plane: Doubles, line: Doubles) -> Doubles:
    rest = plane - np.outer(plane @ line, line)
    return np.asarray(np.linalg.svd(rest, full_matrices=False)[2][0])


def known_plaintext_error(seed: int = 0) -> float:
    """Return the largest error in steps, after learning from ten known publications."""
    encoder = make_encoder(ATTRIBUTES, CELLS, seed)
    cells = np.random.default_rng(seed).integers(0, CELLS, (1000, ATTRIBUTES))
    vectors = encoder.encrypt_cells(cells)
    known = needed_publications(ATTRIBUTES, vectors.shape[1])
    matrix = learn_decryption(vectors[:known], _scale(cells[:known]))
    error = np.abs(decrypt(matrix, vectors[known:]) - _scale(cells[known:]))
    return float(error.max() * CELLS / 2)


def ciphertext_only_error(seed: int = 0, publications: int = 200, boxes: int = 300) -> float:
    """Return the largest distance in steps from the best affine map of each attribute."""
    encoder = make_encoder(ATTRIBUTES, CELLS, seed)
    cells = np.random.default_rng(seed).integers(0, CELLS, (publications, ATTRIBUTES))
    tests = encoder.encrypt_ranges(draw_ranges(boxes, ATTRIBUTES, CELLS, seed))
    shape = recover_shape(encoder.encrypt_cells(cells), tests)
    errors = [_affine_residual(shape[:, i], cells[:, i]) for i in range(ATTRIBUTES)]
    return max(errors)


def _affine_residual(recovered: Doubles, cells: Integers) -> float:
    columns = np.stack([recovered, np.ones(len(recovered))], axis=1)
    solution = np.linalg.lstsq(columns, cells.astype(np.float64), rcond=None)[0]
    return float(np.abs(columns @ solution - cells).max())


def _scale(cells: Integers) -> Doubles:
    return np.asarray((2.0 * cells - (CELLS - 1)) / CELLS)


if __name__ == "__main__":
    sys.stdout.write(
        f"known plaintext, 10 publications: error {known_plaintext_error():.1e} steps\n"
        f"ciphertexts only, 200 publications and 300 boxes: error"
        f" {ciphertext_only_error():.1e} steps after one affine map per attribute\n"
    )
