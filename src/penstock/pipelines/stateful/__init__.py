"""Functions on keyed state, one slice at a time: ready-made ones, and how any function is called.

A function gets the rows of a slice and its `State`, `fn(batch, state)`, and returns rows.
Ready-made functions declare the state they need; `try_batches` runs any function without Spark.
"""

from penstock.pipelines.stateful.deduplication import distinct
from penstock.pipelines.stateful.keyed_counts import counts
from penstock.pipelines.stateful.ranking import top
from penstock.pipelines.stateful.session_windows import sessions
from penstock.pipelines.stateful.stream_joins import join
from penstock.pipelines.stateful.time_windows import windows
from penstock.pipelines.stateful.try_out import try_batches

__all__ = ["counts", "distinct", "join", "sessions", "top", "try_batches", "windows"]
