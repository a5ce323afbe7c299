"""Modules that the daemon of the workers imports, so that no worker has to.

A batch goes to whichever worker waits longest, so every one of a large pool meets each operator
for the first time once, in the middle of a run. What a model needs is best there before.
"""

import importlib
import os
import pickletools
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

from pyspark import cloudpickle

from penstock.pipelines.operator import Operator
from penstock.pipelines.shipped import Shipped

#: The environment variable through which the daemon is told.
VARIABLE = "PENSTOCK_PRELOAD"


def modules_of(operators: Iterable[Operator]) -> list[str]:
    """Make what is shipped, and return the modules that are needed to unpack it."""
    found: set[str] = set()
    for operator in operators:
        if isinstance(operator.options.resource, Shipped):
            packed = cloudpickle.dumps(operator.options.resource)  # type: ignore[no-untyped-call]
            texts = {text for _, text, _ in pickletools.genops(packed) if isinstance(text, str)}
            found |= texts & sys.modules.keys()
    return sorted(found)


def ask_for(modules: Sequence[str]) -> None:
    """Let daemons that are started from now on import these."""
    os.environ[VARIABLE] = ",".join(modules)


def import_asked() -> None:
    """Import what was asked for; what cannot be imported is left to the workers."""
    for name in filter(None, os.environ.get(VARIABLE, "").split(",")):
        with suppress(Exception):
            importlib.import_module(name)
