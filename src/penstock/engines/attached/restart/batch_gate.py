"""Stops a streaming query between two batches, also one whose batches follow each other at once.

A query takes its progress lock when it plans a batch, and after the batch was committed. A stop
that is requested while another thread holds the lock behind a commit takes effect before the next
batch is planned. The lock is private API of Spark, tested with Spark 4.3. Whether a batch was
planned nevertheless shows in the checkpoint; the caller checks it.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

#: Seconds for which the lock is held and released again until a batch has been committed.
_HOLD_S = 0.03
#: Seconds for which a stop may take to be noted.
_MARK_S = 5.0
#: Spark's words for a query that works on a batch; they stay until its trigger has ended.
_WORKING = ("Processing", "No new data")


def stop_between_batches(
    query: StreamingQuery, is_committed: Callable[[], bool], max_wait_s: float
) -> bool:
    """Stop a query when `is_committed` says that the last batch has ended.

    False if no batch ended within `max_wait_s`: then it is stopped in the middle of one, and Spark
    runs this batch again when the query is started again.
    """
    java: Any = query._jsq
    lock = java.streamingQuery().awaitProgressLock()
    deadline = time.monotonic() + max_wait_s
    while time.monotonic() < deadline and java.isActive():
        lock.lock()
        try:
            if _is_between(java) and is_committed():
                _request_stop(query, java)
                return True
            time.sleep(_HOLD_S)  # a query that wants to commit waits here, and is next
        finally:
            lock.unlock()
    query.stop()
    return False


def _is_between(java: Any) -> bool:
    """Whether the query is behind a batch, or waits for its next trigger.

    At the begin of a trigger it is too late: it plans a batch once it has the lock.
    """
    status = java.status()
    return not status.isTriggerActive() or str(status.message()).startswith(_WORKING)


def _request_stop(query: StreamingQuery, java: Any) -> None:
    """Begin to stop a query, which marks it at once; it ends when the lock is released."""
    threading.Thread(target=query.stop, daemon=True).start()
    deadline = time.monotonic() + _MARK_S
    while java.isActive() and time.monotonic() < deadline:
        time.sleep(0.001)
