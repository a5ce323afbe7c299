"""When the next batch of an operator may begin: commands, intervals, back-pressure."""

import time
from math import inf

from penstock.engines.spark.io.backpressure import Backpressure
from penstock.engines.spark.io.commands import Command
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.run_layout import RunLayout

#: Seconds after which a source without rows, and one under back-pressure, looks again.
IDLE_S, FULL_S = 0.5, 0.1


class BatchBegin:
    """Times the batches of one operator by the monotonic clock; the wall clock may be set back."""

    def __init__(self, layout: RunLayout, config: OperatorConfig) -> None:
        self._config, self._backpressure = config, Backpressure(layout, config)
        self._began = -inf
        self._early_s = 0.0
        #: For how long a source without a batch may wait before it asks again.
        self.wait_s = 0.0

    def is_allowed(self, command: Command) -> bool:
        """Whether a batch may begin now, if it is full or not `is_early`."""
        if command.hold:  # the source answers at once: its query may stop between two batches
            self.wait_s = 0.0
            return False
        given_s, config = command.interval_s, self._config
        interval_s = config.min_interval_s if given_s is None else given_s
        self._early_s = interval_s - self.age_s
        is_held_back = self._backpressure.is_on()
        self.wait_s = self._early_s if self.is_early else FULL_S if is_held_back else IDLE_S
        # a full batch takes longer than a short interval
        return not is_held_back and not (self.is_early and interval_s <= config.batch_s)

    @property
    def is_early(self) -> bool:
        """Whether the interval is not over, so that only a full batch may begin."""
        return self._early_s > 0

    @property
    def age_s(self) -> float:
        """Seconds since the last batch was planned."""
        return time.monotonic() - self._began

    def begin(self) -> None:
        """Note that a batch is planned."""
        self._began = time.monotonic()
