"""Python workers: the modules that their daemon imports for them, and their clean exit.

Any worker of the pool may get a batch of any operator, so each one meets every operator for the
first time during the run. Importing the modules of a model in the daemon avoids that delay. A
function with a method `preload` has it called there, such as one that compiles code.
"""

import importlib
import os
import pickle
import pickletools
import signal
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from pyspark import cloudpickle

from penstock.pipelines.operator import Operator
from penstock.pipelines.resources import SharedResource, close_all

#: The environment variable that names the file with the module list.
VARIABLE = "PENSTOCK_PRELOAD"
#: An entry of the list that is a pickled function to call, not a module to import.
_CALL = "call:"


def needed_modules(operators: Iterable[Operator]) -> list[str]:
    """Return the modules that unpickling the shared resources needs; creates the resources.

    Also returns what functions want to be called before workers start.
    """
    names: set[str] = set()
    for operator in (member for op in operators for member in op.members or (op,)):
        preload = getattr(operator.function, "preload", None)
        if preload is not None:
            packed = cloudpickle.dumps(preload)  # type: ignore[no-untyped-call]
            names.add(_CALL + b64encode(packed).decode("ascii"))
        if isinstance(operator.options.resource, SharedResource):
            packed = cloudpickle.dumps(operator.options.resource)  # type: ignore[no-untyped-call]
            texts = {text for _, text, _ in pickletools.genops(packed) if isinstance(text, str)}
            names |= texts & sys.modules.keys()
    return sorted(names)


def set_module_list(path: Path) -> None:
    """Set the module list that the daemon of the next JVM imports; removes an old list."""
    path.unlink(missing_ok=True)
    os.environ[VARIABLE] = str(path)


def write_module_list(path: Path, modules: Sequence[str]) -> None:
    """Write the module list; call it before the first worker starts."""
    path.write_text("\n".join(modules), encoding="utf-8")


def import_module_list() -> None:
    """Import the listed modules and make the listed calls; failures are left to the workers."""
    path = Path(os.environ.get(VARIABLE, os.devnull))
    for entry in path.read_text(encoding="utf-8").split() if path.exists() else ():
        with suppress(Exception):
            if entry.startswith(_CALL):
                pickle.loads(b64decode(entry.removeprefix(_CALL)))()
            else:
                importlib.import_module(entry)


_has_handlers = False


def close_resources_at_exit() -> None:
    """Close the opened resources when the daemon ends this process; later calls do nothing."""
    global _has_handlers
    if not _has_handlers:
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, _exit)
        _has_handlers = True


def _exit(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  (required signature)
    close_all()
    os._exit(0)
