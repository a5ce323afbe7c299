"""Back-pressure: an operator stops reading while too many rows wait downstream."""

import time
from math import inf

from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.topic import Topic


class Backpressure:
    """Looks at the queues that one operator fills, and counts the time that they hold it back."""

    def __init__(self, layout: RunLayout, config: OperatorConfig) -> None:
        self._layout, self._config = layout, config
        self._topics: dict[str, Topic] = {}
        self._seconds, self._on_since = 0.0, -inf

    def is_on(self) -> bool:
        """Whether too many rows wait downstream; counts the seconds of back-pressure."""
        config, now = self._config, time.monotonic()
        if not config.limits:
            return False
        full = any(
            sum(self._count_waiting(name, topic) for topic in config.limited_topics[name]) > limit
            for name, limit in config.limits.items()
        )
        if self._on_since > -inf:
            self._seconds += now - self._on_since
            self._layout.backpressure_file(config.name).write_text(f"{self._seconds:.3f}")
        self._on_since = now if full else -inf
        return full

    def _count_waiting(self, reader: str, name: str) -> int:
        """Return the rows of an output topic that wait for one of its readers."""
        if name not in self._topics:
            self._topics[name] = Topic.open(self._layout.topic(name))
        topic = self._topics[name]
        return topic.refresh() - positions(topic.directory).get(reader, topic.first)
