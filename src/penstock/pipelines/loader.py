"""Loads a pipeline from a Python file."""

import sys
from itertools import count
from pathlib import Path
from types import ModuleType

from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.source_location import line_of

_PREFIX = "penstock_pipeline_"
_number = count(1)


def load_file(path: Path) -> ModuleType:
    """Run a Python file as a separate module, whatever the names of other files.

    As with a script, files beside it can be imported. An error names the line of the file.
    """
    if not path.is_file():
        raise InputError("file", f"there is no file {str(path)!r}")
    module = ModuleType(f"{_PREFIX}{path.stem}_{next(_number)}")
    module.__file__ = str(path.resolve())
    sys.modules[module.__name__] = module  # dataclasses look their module up by name
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        sys.path.append(beside)
    try:
        # the import system would write bytecode files beside it, and may use stale ones
        exec(compile(path.read_bytes(), path, "exec"), vars(module))
    except BaseException as error:
        del sys.modules[module.__name__]
        if isinstance(error, Exception):
            raise _as_input_error(error, path) from error
        raise
    return module


def shipped_modules(pipeline: Pipeline) -> tuple[ModuleType, ...]:
    """Return the modules that other processes cannot import: functions are sent by value.

    These are the file that a pipeline was loaded from, and files beside it that it imported.
    """
    loaded = [module for name, module in sys.modules.items() if name.startswith(_PREFIX)]
    own = [m for m in loaded if any(value is pipeline for value in vars(m).values())]
    folders = {_folder(module) for module in own}
    beside = [
        module
        for name, module in sys.modules.items()
        if "." not in name and name != "penstock" and module not in loaded
    ]
    return (*own, *(module for module in beside if _folder(module) in folders))


def _as_input_error(error: Exception, path: Path) -> InputError:
    """Return the error with the line of the file that raised it."""
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}"
        return InputError("file", f"is not Python: {error.msg}", where=where)
    where = line_of(error, str(path))
    if isinstance(error, InputError):
        return error.at(error.where or where)
    return InputError("file", f"cannot be loaded: {type(error).__name__}: {error}", where=where)


def _folder(module: ModuleType) -> Path | None:
    """Return the folder that must be on the path for a module to be found."""
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    here = Path(file).resolve()
    return here.parents[1] if here.name == "__init__.py" else here.parent


def only_pipeline(module: ModuleType, name: str) -> Pipeline:
    """Return the only pipeline of a module; it may have several names."""
    pipelines = {id(value): value for value in vars(module).values() if isinstance(value, Pipeline)}
    if not pipelines:
        hint = 'begin it with: pipeline = Pipeline("my-pipeline")'
        raise InputError("pipeline", "there is none in this file", hint, name)
    if len(pipelines) > 1:
        names = ", ".join(repr(each.name) for each in pipelines.values())
        hint = "put each into a separate file"
        raise InputError(
            "pipeline", f"there are {len(pipelines)} in this file: {names}", hint, name
        )
    return next(iter(pipelines.values()))
