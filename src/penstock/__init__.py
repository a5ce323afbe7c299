"""Penstock: elastic stream processing on Spark.

Everything in `__all__` is the public API and follows semantic versioning; anything else is
private. `__init__.pyi` tells type checkers where each name is defined.
"""

import logging
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

#: Where each public name is defined; it is loaded when it is used, so commands start at once.
_HOMES = {
    "api.attachment": ("Attachment", "attach"),
    "api.comparison": ("Comparison", "compare"),
    "api.decision": ("decide",),
    "api.elastic": ("elastic",),
    "api.execution": ("run",),
    "api.run_handle": ("Run", "open_run"),
    "api.simulation": ("simulate",),
    "core.decision": ("Decision", "Target", "keep"),
    "core.params": ("Params", "param"),
    "core.policy": ("Applied", "History", "Policy", "PolicyStyle", "RunFacts", "each_operator"),
    "core.reasons": ("Reason",),
    "core.snapshot": ("OperatorSnapshot", "Snapshot"),
    "engines.attached.restart.elastic_query": ("ElasticQuery",),
    "errors": ("InputError", "NotReadyError", "PenstockError", "RunError"),
    "pipelines.host_declaration": ("Hosts",),
    "pipelines.pipeline": ("Pipeline",),
    "pipelines.stateful": (
        *("counts", "distinct", "join", "sessions", "top", "try_batches", "windows"),
    ),
    "runs.result": ("RunResult",),
    "state.handle": ("State",),
    "workloads.workload": ("Workload",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}
#: Public modules, by the name that they have in `penstock`.
_MODULES = {"kafka": "api.kafka"}

__all__ = ["__version__", *sorted([*_MODULE_OF, *_MODULES])]  # noqa: PLE0604  (names are strings)

# quiet unless the program that uses Penstock configures logging
logging.getLogger("penstock").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"penstock.{_MODULES[name]}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(import_module(f"penstock.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
