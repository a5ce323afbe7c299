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
from pathlib import Path

from pyspark import cloudpickle

from penstock.pipelines.operator import Operator
from penstock.pipelines.shared_resource import SharedResource

#: The environment variable that names the file with the list.
VARIABLE = "PENSTOCK_PRELOAD"


def modules_of(operators: Iterable[Operator]) -> list[str]:
    """Make what is shipped, and return the modules that are needed to unpack it."""
    found: set[str] = set()
    for operator in operators:
        if isinstance(operator.options.resource, SharedResource):
            packed = cloudpickle.dumps(operator.options.resource)  # type: ignore[no-untyped-call]
            texts = {text for _, text, _ in pickletools.genops(packed) if isinstance(text, str)}
            found |= texts & sys.modules.keys()
    return sorted(found)


def name_list(path: Path) -> None:
    """Let daemons of a JVM that is started from now on import what a file lists."""
    path.unlink(missing_ok=True)
    os.environ[VARIABLE] = str(path)


def write_list(path: Path, modules: Sequence[str]) -> None:
    """List modules; to be done before the first worker starts, which may be long after the JVM."""
    path.write_text("\n".join(modules), encoding="utf-8")


def import_listed() -> None:
    """Import what is listed; what cannot be imported is left to the workers."""
    path = Path(os.environ.get(VARIABLE, os.devnull))
    for name in path.read_text(encoding="utf-8").split() if path.exists() else ():
        with suppress(Exception):
            importlib.import_module(name)
