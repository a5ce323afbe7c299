"""A node process with a planted bug: one record is dropped, or sent twice.

The launcher starts this module in place of the real one, and it forks nodes with the bug.
"""

import os
import sys
from typing import Any

from penstock.decentralized.messages import RecordsProcessed
from penstock.decentralized.processes import fork_server
from penstock.decentralized.processes.node import Node
from penstock.decentralized.processes.node_process import run_node
from penstock.decentralized.processes.node_work import Record

#: What happens to the record 7 on its way from the first operator.
BUG = "PENSTOCK_PLANTED_BUG"
VICTIM = 7
send = Node.pass_on


def pass_on(self: Node, result: Record) -> None:
    """Send a result, but the victim twice or never."""
    is_victim = self.id.startswith("parse-") and result.sequence == VICTIM
    if is_victim and os.environ[BUG] == "drop":
        self.apply(RecordsProcessed())
        return
    if is_victim and os.environ[BUG] == "repeat":
        self.note_arrival()
        send(self, result)
    send(self, result)


def run_with_bug(request: dict[str, Any]) -> int:
    """Run one node with the bug."""
    Node.pass_on = pass_on  # type: ignore[method-assign]
    return run_node(request)


if __name__ == "__main__":
    sys.exit(fork_server.main(run_with_bug))
