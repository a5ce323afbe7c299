"""Finds the Java that Spark needs, before anything is begun that would need it."""

import os
import shutil

from penstock.errors import InputError

_HINT = "Spark needs Java 17 or newer: install it, or set JAVA_HOME to where it is"


def check_java() -> None:
    """Refuse to go on if there is no Java where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=os.path.join(home, "bin")) is None:  # noqa: PTH118
        raise InputError("JAVA_HOME", f"there is no bin/java in {home!r}", _HINT)
    if not home and shutil.which("java") is None:
        raise InputError("java", "is not installed, or not on the PATH", _HINT)
