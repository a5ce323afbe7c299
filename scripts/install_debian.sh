#!/bin/sh
# Installs a Debian package for tests if its commands are missing and it can be installed.
#
#     sh scripts/install_debian.sh PACKAGE COMMAND...
#
# One of the commands is enough. Always succeeds: without the package its tests are skipped, with a reason.
package=$1
shift
for name in "$@"; do
    command -v "$name" >/dev/null && exit 0
done
skipped="tests with $package will be skipped"
if ! command -v apt-get >/dev/null; then
    echo "no $package, and no apt-get to install it: $skipped" >&2
elif [ "$(id -u)" -ne 0 ]; then
    echo "no $package; as root: apt-get install $package. Until then $skipped" >&2
else
    echo "installing Debian's $package" >&2
    export DEBIAN_FRONTEND=noninteractive
    options="-qq -o DPkg::Lock::Timeout=120"
    # shellcheck disable=SC2086
    { apt-get $options update && apt-get $options install -y --no-install-recommends "$package"; } \
        >/dev/null || echo "$package cannot be installed: $skipped" >&2
fi
exit 0
