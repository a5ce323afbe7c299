#!/bin/sh
# install.sh PYTHON LOCK [PROJECT]: install exactly what a lock file pins, then a project in place.
# Nothing is resolved (a newer release cannot change the result); at the end nothing may be missing.
python="$1" lock="$2" project="${3:-}"
pip() { "$python" -m pip --disable-pip-version-check "$@"; }
install() { pip install --quiet --no-deps --no-build-isolation --use-pep517 "$@"; }

# packages that are published as source are built with the pinned setuptools, so that comes first
tools=$(mktemp) && trap 'rm -f "$tools"' EXIT
awk '/^[^ #]/ { is_tool = /^setuptools==/ } is_tool' "$lock" >"$tools"
if [ -s "$tools" ]; then install --require-hashes -r "$tools" || exit 2; fi
echo "installing $(grep -c '^[a-zA-Z]' "$lock") packages, the longest step" >&2
install --require-hashes -r "$lock" || exit 2
if [ -n "$project" ]; then install -e "$project" || exit 2; fi
echo "checking that they fit together" >&2
if ! missing=$(pip check); then
    echo "$missing" >&2
    echo "error: these packages do not fit together. Run make clean and try again; if that does" >&2
    echo "not help, $lock is incomplete: pin everything again with make lock" >&2
    exit 2
fi
