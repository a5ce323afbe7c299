"""Keeps the output file of the JVM small while it is being written.

Whatever functions print goes there, for weeks. The JVM appends to the file, so it can be emptied
under it; the last part is kept beside it.
"""

import os
import shutil
from pathlib import Path

#: The file is emptied beyond this; what it held stays in a second file until the next time.
MAX_BYTES = 10_000_000


def bound_output(path: Path, max_bytes: int = MAX_BYTES) -> bool:
    """Empty a file that became too large; True if it did. What is written meanwhile may be lost."""
    try:
        if path.stat().st_size <= max_bytes:
            return False
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        os.truncate(path, 0)
    except OSError:  # a full disk, or a file that is gone: nothing that a run should end for
        return False
    return True
