"""The ends of batches: with source batches, or with commits, where operators need that."""

from collections.abc import Mapping

from penstock.engines.microbatch.admission import WaitingRows
from penstock.engines.spark.io.input_progress import InputProgress
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.topics.port import TopicView


class BatchEnds:
    """Moves the ends of one operator's batches."""

    def __init__(
        self, config: OperatorConfig, topics: Mapping[str, TopicView], progress: InputProgress
    ) -> None:
        self._config, self._topics, self._progress = config, topics, progress

    def align(self, name: str, queue: WaitingRows, end: int) -> int:
        """Move the end of a batch to the end of a source batch or of a commit, if needed."""
        end = self._align_source_batches(name, queue, end)
        if name in self._config.whole_commits and end > queue.start:
            return self._find_commit_end(name, queue.start, end)
        return end

    def _find_commit_end(self, name: str, start: int, end: int) -> int:
        """Return the last end of a commit in (start, end], or the first one after that.

        A commit that is larger than a batch should be is taken as a whole.
        """
        commits = self._topics[name].commits(start, end)
        return max((c.end for c in commits if c.end <= end), default=commits[-1].end)

    def _align_source_batches(self, name: str, queue: WaitingRows, end: int) -> int:
        """Move the end of a batch to the end of a source batch, if downstream operators need it.

        Spark's own state needs whole source batches: Spark would take the newest time of a
        part for that of the whole.
        """
        if not self._config.keeps_batches or queue.skips:
            return end
        whole = self._progress.find_whole_end(name, queue.start, end)
        if whole is None and self._config.source.needs_whole_batches:
            return self._progress.find_next_whole_end(name, queue.start, queue.end)
        return end if whole is None else whole


def find_first_after(topic: TopicView, start: int, end: int, at: float) -> int:
    """Return the offset of the first row that was committed after a time."""
    for commit in topic.commits(start, end):
        if commit.at > at:
            return max(start, commit.first)
    return end
