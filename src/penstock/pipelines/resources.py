"""Resources of operators: models and connections that a process opens once, or gets ready-made."""

import atexit
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from penstock.errors import InputError
from penstock.pipelines.operator import Operator

_open: dict[tuple[str, str], Any] = {}
_closing = ExitStack()
_NOTHING = object()


def resource_of(operator: Operator, run: str = "") -> Any:
    """Return the operator's resource, opened by the first call in this process; or None.

    `run` separates two runs in one process: each has its own resource.
    """
    key = (run, operator.name)
    if operator.options.resource is None:
        return None
    if key not in _open:
        if not _open:
            atexit.register(close_all)
        _open[key] = _closing.enter_context(opened(operator))
    return _open[key]


def close_all() -> None:
    """Close all resources of this process, in the reverse order of opening."""
    _open.clear()
    _closing.close()


@contextmanager
def opened(operator: Operator) -> Iterator[Any]:
    """Open the operator's resource for a `with` block.

    A context manager is entered and left; anything else is closed if it has a `close`.
    """
    if operator.options.resource is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            resource = operator.options.resource()
            if hasattr(resource, "__enter__"):
                resource = stack.enter_context(resource)
            elif hasattr(resource, "close"):
                stack.callback(resource.close)
        except Exception as error:
            problem = f"cannot be opened: {type(error).__name__}: {error}"
            raise InputError(f"{operator.name}.resource", problem, where=operator.where) from error
        yield resource


class SharedResource:
    """A resource that is made once, where the run starts, and sent to every process.

    For a model that is slow to train and small to send. A connection is opened by each process.

    >>> import pickle
    >>> model = pickle.loads(pickle.dumps(SharedResource(lambda: [1, 2])))
    >>> model()
    [1, 2]
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made = make, _NOTHING

    def __call__(self) -> Any:
        if self._made is _NOTHING:
            self._made = self._make()
        return self._made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self(),)


def _restore(made: Any) -> SharedResource:
    return SharedResource(lambda: made)
