"""Spaces, encoders and boxes for tests."""

import numpy as np

from penstock.core.frozen_dict import FrozenDict
from penstock.pubsub.arrays import Flags, Integers
from penstock.pubsub.kernels.half_spaces import vector_size
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.aspe_key import make_aspe_key
from penstock.pubsub.spaces.grid import NumberGrid
from penstock.pubsub.spaces.space import ASPE, Space


def make_encoder(attributes: int, cells: int, seed: int = 0) -> AspeEncoder:
    """An encoder of a space whose attributes have so many cells, missing included."""
    random = np.random.default_rng(seed)
    grid = NumberGrid(low=0, high=cells - 2, step=1)
    grids = FrozenDict({f"a{i}": grid for i in range(attributes)})
    key = make_aspe_key(vector_size(attributes), random.bytes)
    return AspeEncoder(Space(scheme=ASPE, attributes=grids), key, random.bytes)


def draw_ranges(boxes: int, attributes: int, cells: int, seed: int = 0) -> Integers:
    """Random boxes: first and last cell of every attribute."""
    random = np.random.default_rng(seed)
    return np.sort(random.integers(0, cells, (boxes, attributes, 2)), axis=2)


def neighbours(ranges: Integers, cells: int) -> Integers:
    """For every bound of every box, its two neighbours; other attributes inside the box."""
    points = []
    inside = ranges.sum(axis=2) // 2
    for attribute in range(ranges.shape[1]):
        for end, shift in ((0, -1), (0, 0), (1, 0), (1, 1)):
            point = inside.copy()
            point[:, attribute] = ranges[:, attribute, end] + shift
            points.append(point)
    return np.clip(np.concatenate(points), 0, cells - 1)


def brute_force(ranges: Integers, points: Integers) -> Flags:
    """Which publications are in which boxes, by comparing cells: (publications, boxes)."""
    matches = np.ones((len(points), len(ranges)), np.bool_)
    for attribute in range(ranges.shape[1]):
        values = points[:, attribute, None]
        matches &= (values >= ranges[:, attribute, 0]) & (values <= ranges[:, attribute, 1])
    return matches
