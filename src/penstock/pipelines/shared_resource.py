"""A resource that is made once, where the run starts, and sent to every process that needs it.

For a model that is slow to train or to load and small to send; a connection is opened by each
process for itself.
"""

from collections.abc import Callable
from typing import Any

_NOTHING = object()


class SharedResource:
    """Called, it returns what the given function made; packed, it takes that along.

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
        return _arrived, (self(),)


def _arrived(made: Any) -> SharedResource:
    return SharedResource(lambda: made)
