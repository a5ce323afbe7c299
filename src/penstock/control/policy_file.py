"""Loads a policy from a Python file, which may import files beside it."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType

from penstock.control.failures import describe_error
from penstock.core.policy import Policy
from penstock.errors import InputError
from penstock.files.text import is_file

_PREFIX = "penstock_policy_"
_number = count()


def load_policy_file(path: Path) -> Policy:
    """Return the `POLICY` that a file defines."""
    if not is_file(path):
        raise InputError("policy", f"there is no file {str(path)!r}")
    policy = getattr(_load(path), "POLICY", None)
    if not isinstance(policy, Policy):
        hint = "end the file with POLICY = Policy(name=..., ...), see CONTRIBUTING.md"
        raise InputError("policy", f"{path} does not define POLICY", hint)
    return policy


def _load(path: Path) -> ModuleType:
    module = ModuleType(f"{_PREFIX}{path.stem}_{next(_number)}")
    module.__file__ = str(path.resolve())
    sys.modules[module.__name__] = module  # dataclasses look their module up by name
    try:
        with _neighbours(path.resolve().parent, module.__name__):
            exec(compile(path.read_bytes(), path, "exec"), vars(module))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() in a policy must not end the command
        del sys.modules[module.__name__]
        problem = f"{path} cannot be loaded: {describe_error(error)}"
        raise InputError("policy", problem, where=_line(error, path)) from error
    return module


@contextmanager
def _neighbours(folder: Path, owner: str) -> Iterator[None]:
    """Let imports find the files of a folder while the context lasts.

    Modules that were imported from there are renamed with their owner as prefix: a second policy
    may have another file of the same name beside it.
    """
    before, writes = set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes
        for name in set(sys.modules) - before:
            if _is_within(sys.modules[name], folder):
                _rename(sys.modules.pop(name), f"{owner}.{name}")


def _is_within(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and folder in Path(file).resolve().parents


def _rename(module: ModuleType, name: str) -> None:
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            value.__module__ = name  # annotations are looked up there
    module.__name__ = name
    sys.modules[name] = module


def _line(error: BaseException, path: Path) -> str:
    """Return the line of the file that failed."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{error.filename}:{error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else ""
