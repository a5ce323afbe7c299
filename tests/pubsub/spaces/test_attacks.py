"""Both attacks on the scheme aspe succeed; the docs must not promise more."""

import numpy as np
from tests.pubsub.factories import draw_ranges, make_encoder
from tests.pubsub.spaces.attacks import (
    ATTRIBUTES,
    CELLS,
    ciphertext_only_error,
    known_plaintext_error,
    needed_publications,
)


def test_ten_known_publications_decrypt_all_others() -> None:
    assert needed_publications(4, 8) == 10
    assert max(known_plaintext_error(seed) for seed in range(5)) < 1e-4


def test_ciphertexts_alone_give_all_values_up_to_an_affine_map() -> None:
    assert ciphertext_only_error() < 1e-4


def test_decoys_do_not_raise_the_rank_of_all_products() -> None:
    encoder = make_encoder(ATTRIBUTES, CELLS)
    points = encoder.encrypt_cells(np.random.default_rng(0).integers(0, CELLS, (50, ATTRIBUTES)))
    tests = encoder.encrypt_ranges(draw_ranges(50, ATTRIBUTES, CELLS)).reshape(-1, 8)
    assert np.linalg.matrix_rank(points @ tests.T, tol=1e-9) == ATTRIBUTES + 1
