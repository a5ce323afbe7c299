"""Finds states from which nothing but new decisions could lead to rest."""

import numpy as np

from penstock.decentralized.checker.exploration import StateGraph


def find_endless_state(graph: StateGraph) -> int | None:
    """Return the first state that cannot reach a quiet state without new decisions.

    The graph must be complete. From such a state an action never ends: the nodes wait for each
    other, or send messages for ever.
    """
    sources = np.frombuffer(graph.sources, dtype=np.uint32)
    targets = np.frombuffer(graph.targets, dtype=np.uint32)
    can_rest = np.zeros(len(graph.states), dtype=bool)
    can_rest[np.frombuffer(graph.quiet, dtype=np.uint32)] = True
    while True:
        news = sources[can_rest[targets] & ~can_rest[sources]]
        if not len(news):
            break
        can_rest[news] = True
    endless = np.flatnonzero(~can_rest)
    return int(endless[0]) if len(endless) else None
