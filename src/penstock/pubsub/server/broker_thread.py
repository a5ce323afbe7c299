"""The one thread that talks to the engine and to the store of subscriptions."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from penstock.pubsub.broker import Broker
from penstock.pubsub.server.subscription_store import SubscriptionStore

T = TypeVar("T")


class BrokerThread:
    """Runs calls one after the other, because a broker allows one thread at a time.

    The store lives on the same thread: a change of subscriptions and its request keep their order.
    """

    def __init__(self, broker: Broker, store: SubscriptionStore) -> None:
        self.broker, self.store = broker, store
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="broker")

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call on the thread and await its result."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """End the thread after the calls that wait."""
        self._executor.shutdown(wait=True)
