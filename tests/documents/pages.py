"""The pages of the repository, and what is in them: code blocks, commands, headings, links.

Conventions of code blocks, by language:
- console: lines that begin with "$ " are commands without Spark, the others are their exact output.
- sh: commands that must parse. In the pages of `PLAYED` all of them run, in order; in the others,
  those that need neither Spark nor a server (`test_simulated_commands.py`).
- shell: commands for a reader's machine; they must parse, and do not run.
- python: runs, all blocks of a page in one namespace; blocks with `>>>` are doctests.
- py: needs Spark or a server; it must compile. All code uses public names (`test_public_code.py`).
`<!-- file: NAME -->` above a block saves it as a file for the commands below it.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
#: Pages that commands make: their code is tested where it comes from.
MADE = {
    *("api.md", "metrics.md", "policies.md"),
    *("benchmarks.md", "spark-results.md", "twin.md", "twin-blind.md", "reproduction.md"),
    *("reproduction-streamhub.md", "reproduction-decentralized.md"),
}
#: The reference of policies, whose commands run although it is made.
POLICIES = "docs/policies.md"
#: Pages whose commands all run, one after the other, as a reader would run them.
PLAYED = ("README.md", "docs/getting-started.md")

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*?$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"<!-- file: (\S+) -->\s*\Z")
_SEPARATORS, _REDIRECTIONS = set("&|;"), set("<>")


class Block(NamedTuple):
    """A code block of a page."""

    language: str
    text: str
    #: The line of the page on which the text begins.
    line: int
    #: The file that it is saved as; empty: none.
    file: str


def all_pages() -> list[str]:
    """Every page that people read, by its path in the repository."""
    names = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "deploy/README.md"]
    return names + sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))


def guides() -> list[str]:
    """The pages that people write, with code that is tested here."""
    shown = ("README.md", "docs/")
    return [page for page in all_pages() if page.startswith(shown) and Path(page).name not in MADE]


def read_page(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def find_blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks of a text.

    >>> list(find_blocks("Save it:\\n<!-- file: a.py -->\\n```python\\na = 1\\n```\\n"))
    [Block(language='python', text='a = 1\\n', line=4, file='a.py')]
    """
    for found in _FENCE.finditer(text):
        above = text[: found.start()]
        file = _FILE.search(above)
        line = above.count("\n") + 2
        yield Block(found[1], found[2], line, file[1] if file else "")


def blocks_of(page: str, *languages: str) -> list[Block]:
    """Return the blocks of a page in these languages."""
    return [block for block in find_blocks(read_page(page)) if block.language in languages]


def console_examples(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield each command of a console block with the output below it.

    >>> list(console_examples("$ echo a \\\n  b\na b\n$ true\n"))
    [('echo a \\\n  b', 'a b\n'), ('true', '')]
    """
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:[^\n]*\\\n)*[^\n]*", part)
        assert command is not None
        yield command[0], part[command.end() :].removeprefix("\n")


def shell_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a shell script, without redirections.

    >>> list(shell_commands("head -n 1 'a b' | penstock decide - > log 2>&1 &  # why\\n"))
    [['head', '-n', '1', 'a b'], ['penstock', 'decide', '-']]
    """
    for line in re.sub(r"\\\n", " ", text).splitlines():
        words: list[str] = []
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
        lexer.whitespace_split = True
        tokens = iter(lexer)
        for token in tokens:
            if set(token) <= _SEPARATORS:
                if words:
                    yield words
                words = []
            elif set(token) & _REDIRECTIONS and set(token) <= _SEPARATORS | _REDIRECTIONS:
                words = words[:-1] if words and words[-1].isdigit() else words
                next(tokens, None)
            else:
                words.append(token)
        if words:
            yield words


def headings(text: str) -> list[str]:
    """Return the anchors of all headings, as GitHub makes them.

    >>> headings("# `run`, and *then*?\\n## A\\n## A\\n")
    ['run-and-then', 'a', 'a-1']
    """
    anchors: list[str] = []
    for title in re.findall(r"^#{1,6} +(.*?)\s*$", _FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        repeats = sum(1 for known in anchors if re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", known))
        anchors.append(f"{anchor}-{repeats}" if repeats else anchor)
    return anchors


def links(text: str) -> list[str]:
    """Return the targets of all links and pictures outside of code."""
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def inline_commands(text: str) -> list[str]:
    """Return what the prose shows as commands: code that begins with "penstock "."""
    return re.findall(r"`(penstock [^`]+)`", _FENCE.sub("", text))
