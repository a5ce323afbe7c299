"""An immutable dictionary, so that frozen dataclasses that hold one are immutable too."""

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A `dict` whose every way to change it raises `TypeError`.

    A subclass of `dict` rather than a `MappingProxyType`: it pickles, copies and
    compares like the plain one, and look-ups stay as fast.

    >>> FrozenDict(a=1)["b"] = 2
    Traceback (most recent call last):
    TypeError: this mapping is immutable
    """

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError("this mapping is immutable")

    __setitem__ = __delitem__ = _refuse
    __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> "FrozenDict[K, V]":
        return self

    def __reduce__(self) -> tuple[type["FrozenDict[K, V]"], tuple[dict[K, V]]]:
        # dict subclasses are otherwise rebuilt item by item, which is refused here
        return FrozenDict, (dict(self),)


def freeze(value: Any) -> Any:
    """Return parsed JSON with every list a tuple and every object a `FrozenDict`."""
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(inner) for key, inner in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(inner) for inner in value)
    return value


def thaw(value: Any) -> Any:
    """Return the inverse of `freeze`: plain dictionaries and lists, ready for JSON."""
    if isinstance(value, Mapping):
        return {key: thaw(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(inner) for inner in value]
    return value
