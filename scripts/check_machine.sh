#!/bin/sh
# One clear line if Python or Java is missing, too old, or newer than the pinned packages.
python="${1:-python3}"
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "error: penstock needs Python 3.11 or newer as '$python': install it, or call make PYTHON=/path/to/python3.11" >&2
    exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 15))'; then
    echo "error: the pinned packages have no wheels for the version of '$python': call make PYTHON=/path/to/python3.14, or an older one from 3.11 on" >&2
    exit 2
fi
java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
# "17.0.15" and "1.8.0_402": the major version is the first number that is not a leading 1.
major=$("$java" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1)
if [ -z "$major" ]; then
    echo "error: penstock needs Java 17 or newer and found none: install a JDK (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME" >&2
    exit 2
elif [ "$major" -lt 17 ]; then
    echo "error: penstock needs Java 17 or newer and found Java $major: install a newer JDK or point JAVA_HOME to one" >&2
    exit 2
fi
