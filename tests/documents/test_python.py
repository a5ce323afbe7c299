"""Python blocks of a page run in their order, in one namespace; `>>>` blocks as doctests."""

import doctest
import linecache
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.documents.pages import Block, blocks_of, guides

pytestmark = pytest.mark.slow


def run_block(page: str, block: Block, namespace: dict[str, Any]) -> None:
    """Run a block; an error shows its line of the page."""
    if block.text.startswith(">>>"):
        parser, report = doctest.DocTestParser(), []
        test = parser.get_doctest(block.text, namespace, page, page, block.line - 1)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=report.append, clear_globs=False)
        namespace.update(test.globs)
        assert not report, "".join(report)
        return
    name = f"{page}:{block.line}"
    # pictures of functions, such as inspect.getsource, look their lines up
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
    exec(compile(block.text, name, "exec"), namespace)


@pytest.mark.parametrize("page", [page for page in guides() if blocks_of(page, "python")])
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks_of(page, "python"):
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            # another page may have a file of that name
            sys.modules.pop(Path(block.file).stem, None)
        run_block(page, block, vars(module))


def test_a_wrong_block_is_found() -> None:
    with pytest.raises(ZeroDivisionError):
        run_block("page.md", Block("python", "a = 1 / 0\n", 3, ""), {})
    with pytest.raises(AssertionError, match="Expected"):
        run_block("page.md", Block("python", ">>> 1 + 1\n3\n", 3, ""), {})
