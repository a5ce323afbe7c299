"""Rewrites a pipeline so that each of its chains is one operator.

A chain has the name, the state and the inputs of its first member, and the outputs of its last
one. So the engine runs it as any other operator; the topics between its members are not filled.
"""

from collections.abc import Collection
from copy import copy
from dataclasses import replace

from penstock.pipelines.chains import OperatorChain, find_chains
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline


def join_chains(pipeline: Pipeline) -> Pipeline:
    """Check a pipeline, and return it with its chains as single operators."""
    pipeline.check()
    chains = [chain for chain in find_chains(pipeline) if len(chain.members) > 1]
    if not chains:
        return pipeline
    heads = {chain.members[0]: _join(pipeline, chain) for chain in chains}
    followers = {name for chain in chains for name in chain.members[1:]}
    inner = {pipeline.operators[name].reads[0] for name in followers}
    joined = copy(pipeline)
    joined.declared = {n: topic for n, topic in pipeline.declared.items() if n not in inner}
    joined.operators = {
        name: heads.get(name, operator)
        for name, operator in pipeline.operators.items()
        if name not in followers
    }
    return joined


def _join(pipeline: Pipeline, chain: OperatorChain) -> Operator:
    members = tuple(pipeline.operators[name] for name in chain.members)
    last = members[-1]
    return replace(
        members[0], writes=last.writes, extra_outputs=last.extra_outputs, members=members
    )


def separate_followers(joined: Pipeline, waiting: Collection[str]) -> Pipeline:
    """Return a pipeline of the followers in chains for which rows wait, and those behind them."""
    chosen: list[Operator] = []
    for operator in joined.operators.values():
        followers = operator.members[1:]
        places = [place for place, member in enumerate(followers) if member.name in waiting]
        chosen += followers[min(places) :] if places else ()
    origin, alone = joined.origin, copy(joined.origin)
    filled = {topic for operator in chosen for topic in operator.fills}
    used = filled | {topic for operator in chosen for topic in operator.reads}
    alone.declared = {
        name: replace(topic, external=name not in filled)
        for name, topic in origin.declared.items()
        if name in used
    }
    alone.operators, alone.feeds = {operator.name: operator for operator in chosen}, {}
    return alone
