#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/install-deps.sh [core|demo|test]...
# Installs the Debian packages of these groups that are missing: with apt-get when root, else it
# prints the line to run and exits 1. Silent and quick when nothing is missing, and where there is
# no dpkg (other systems bring the same libraries under names of their own; CMake names what lacks).
set -u

core="build-essential cmake ninja-build pkg-config libdnnl-dev libjpeg-dev libpng-dev zlib1g-dev
      libjansson-dev"
demo="dataset-fashion-mnist"
test="libcmocka-dev clang clang-format-14 libomp-dev ccache dataset-fashion-mnist
      python3 python3-pip"

command -v dpkg-query >/dev/null || exit 0

wanted=""
for group in "${@:-core}"; do
    case $group in
    core) wanted+=" $core" ;;
    demo) wanted+=" $demo" ;;
    test) wanted+=" $test" ;;
    *)
        echo "install-deps.sh: no group '$group': core, demo or test" >&2
        exit 2
        ;;
    esac
done

# Some of these names are virtual (libjpeg-dev): what a package provides counts as well.
present=$(dpkg-query -W -f '${db:Status-Abbrev}|${Package}, ${Provides}\n' |
    sed -n 's/^ii *|//p' | tr ',' '\n' | sed 's/^ *//; s/ .*//')
missing=""
for package in $wanted; do
    grep -qxF "$package" <<<"$present" || missing+=" $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ]; then
    echo "Packages are missing. Run this, then make again:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi

echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    # shellcheck disable=SC2086
    apt-get install -y --no-install-recommends $missing >"$log" 2>&1
}
# The lists may be absent or too old to know where the packages are now.
if ! install; then
    if ! apt-get update >"$log" 2>&1 || ! install; then
        cat "$log" >&2
        echo "install-deps.sh: apt-get could not install$missing" >&2
        exit 1
    fi
fi
