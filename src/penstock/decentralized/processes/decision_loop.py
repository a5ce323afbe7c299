"""Decides for one node, from what the node measures alone: duplicate, stop, or stay."""

import asyncio
import time
from random import Random

from penstock.core.instance_decision import decide_alone
from penstock.decentralized.messages import Duplicate, Stop
from penstock.decentralized.processes.launcher_link import LauncherLink
from penstock.decentralized.processes.node import Node
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.decentralized.protocol import can_scale


class DecisionLoop:
    """Asks `decide_alone` at regular times, with the node's load and the number of its siblings."""

    def __init__(self, node: Node, link: LauncherLink, spec: ProcessRunSpec, name: str) -> None:
        self._node, self._link, self._spec = node, link, spec
        self._random = Random(f"{spec.seed}/{name}/decisions")
        self._busy = asyncio.Lock()
        self._is_frozen = False

    async def run(self) -> None:
        """Decide once per interval; nodes do so at different times."""
        await asyncio.sleep(self._spec.interval_s * self._random.random())
        received, began_s = self._node.work.received, time.monotonic()
        while True:
            await asyncio.sleep(self._spec.interval_s)
            now_s = time.monotonic()
            load = (self._node.work.received - received) / (now_s - began_s)
            received, began_s = self._node.work.received, now_s
            async with self._busy:
                await self._decide(load)

    async def freeze(self) -> None:
        """Decide nothing more; return when no decision is under way."""
        self._is_frozen = True
        async with self._busy:
            return

    async def _decide(self, load: float) -> None:
        state, siblings, spec = self._node.state, self._node.siblings, self._spec
        # a node that no record has reached yet does not know how many siblings it has
        if self._is_frozen or siblings is None or state is None or not can_scale(state):
            return
        change = decide_alone(
            load,
            siblings,
            spec.capacity,
            spec.params,
            is_keeper=state.is_keeper,
            draw=self._random.random,
        )
        if change > 0:
            self._node.apply(Duplicate(new_nodes=await self._link.create_nodes(change)))
        elif change < 0:
            self._node.apply(Stop())
