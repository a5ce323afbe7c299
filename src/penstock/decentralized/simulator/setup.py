"""The setup of a simulation: pipeline, load, decision, faults and seed.

Defaults are those of section 5.1 of Belkhiria and Tedeschi, "Decentralized Scaling for Stream
Processing Engines", 2019. The paper does not give the step size of its Brownian motion.
"""

from dataclasses import asdict, dataclass
from typing import Any

from penstock.core.instance_decision import DecentralizedParams
from penstock.core.params import Params, param
from penstock.errors import InputError
from penstock.workloads.pattern import SEED

LOADS = ("brownian", "ramp", "growth", "jump", "trace")
MODES = ("exact", "counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecentralizedSetup(Params):
    """Everything that determines a simulation."""

    operators: int = param(5, "operators of the pipeline", low=2, high=1000)
    instances: int = param(7, "instances of each operator at the start", low=1, high=1_000_000)
    capacity: int = param(500, "records that an instance processes per step", low=1)
    steps: int = param(200, "time steps", low=1, high=1_000_000)
    every: int = param(5, "steps between two decisions of an instance", low=1)
    r: float = param(0.7, "share of its capacity that an instance should use", low=0, above=True)
    up: float = param(0.8, "duplicate at or above this share", low=0, above=True)
    down: float = param(0.6, "may stop at or below this share", low=0)
    load: str = param("brownian", "how the load of an operator changes", choices=LOADS)
    volatility: float = param(
        0.2, "brownian: standard deviation of a step, as a share of the first load", low=0, high=10
    )
    growth: float = param(
        8.0, "ramp, growth, jump: last load over first load", low=0, above=True, high=10_000
    )
    trace: str = param("", "trace: CSV file with a column rate, or rate-1, rate-2, ...")
    mode: str = param("exact", "every message, or counted from shared sets", choices=MODES)
    message_loss: float = param(0.0, "probability that a message is lost", low=0, high=1)
    message_delay: int = param(0, "delay of messages on the slowest channel", unit="steps", low=0)
    record_delay: int = param(0, "delay of records on the slowest channel", unit="steps", low=0)
    crashes: int = param(0, "instances that crash at random steps", low=0)
    seed: int = param(SEED, "seed of loads, decisions and faults")

    def check(self) -> None:
        """Refuse a trace without its file, and faults in the counted mode."""
        self.decision  # noqa: B018 - raises InputError for thresholds in the wrong order
        if (self.load == "trace") != bool(self.trace):
            raise InputError("trace", "the load 'trace' needs a CSV file, and only this load")
        if self.has_faults and self.mode != "exact":
            raise InputError("mode", "counted messages arrive always", "faults need the exact mode")

    @property
    def has_faults(self) -> bool:
        """Whether messages are lost, something is late, or instances crash."""
        delay = self.message_delay or self.record_delay
        return bool(self.message_loss or delay or self.crashes)

    @property
    def decision(self) -> DecentralizedParams:
        """The parameters of the decision function."""
        return DecentralizedParams(r=self.r, up=self.up, down=self.down)

    @property
    def first_load(self) -> int:
        """Records per step that use the first instances of an operator at the share r."""
        return round(self.r * self.capacity * self.instances)

    @property
    def policy(self) -> str:
        """The name of the policy that decides."""
        return "decentralized"

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries."""
        return asdict(self)
