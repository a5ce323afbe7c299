"""The configuration of one node process, and the name that makes it reachable."""

from dataclasses import asdict, dataclass
from typing import Any

from penstock.decentralized.node_state import NodeId
from penstock.decentralized.processes.run_spec import SINK, SOURCE, ProcessRunSpec

#: The name of the launcher in handshakes.
LAUNCHER = "launcher"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What a node process knows when it starts; its neighbours come later, by messages."""

    #: Operator and number, such as enrich-3.
    name: str
    operator: str
    #: The port to listen on; 0: any free port.
    port: int
    launcher_port: int
    #: Keeps strangers out; never on a command line or in a file.
    token: str
    #: The time of the monotonic clock of this machine at which the run began.
    began_s: float
    spec: ProcessRunSpec

    @property
    def is_end(self) -> bool:
        """Whether the node is source or sink, which do not scale."""
        return self.operator in (SOURCE, SINK)

    def to_json(self) -> dict[str, Any]:
        """Return the configuration as JSON."""
        return {**asdict(self), "spec": self.spec.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "NodeConfig":
        """Read what `to_json` returned."""
        return cls(**{**data, "spec": ProcessRunSpec.from_json(data["spec"])})


def node_id(name: str, port: int) -> NodeId:
    """Return the id of a node, which is also its address.

    >>> node_id("enrich-3", 40123)
    'enrich-3@40123'
    """
    return f"{name}@{port}"


def port_of(node: NodeId) -> int:
    """Return the port of a node."""
    return int(node.rpartition("@")[2])


def name_of(node: NodeId) -> str:
    """Return the operator and the number of a node."""
    return node.rpartition("@")[0]
