"""A call in a thread of its own, whose result is asked for later."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """Calls a function beside the caller; a process that ends does not wait for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._call, daemon=True)

    def start(self) -> None:
        """Begin the call, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def _call(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        """Wait for the result; raise what the function raised."""
        self.start()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]
