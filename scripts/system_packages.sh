#!/bin/sh
# Sees to the system packages that the tests of real windows need: a virtual screen, a window
# manager, synthetic input, software OpenGL and the libraries of Qt's xcb plugin. Installs what is
# missing as root or through a sudo that asks no password; otherwise prints the one command.
#
#   system_packages.sh [arm64]     with arm64 also what tests the kernels of another machine
set -eu

packages="g++ xvfb openbox xdotool libgl1-mesa-dri libegl1 libgl1 libxkbcommon-x11-0 libxcb-cursor0
    libxcb-icccm4 libxcb-keysyms1 libxcb-image0 libxcb-render-util0 libxcb-shape0 libxcb-xinerama0
    libxcb-randr0 libxcb-shm0 libxcb-sync1 libxcb-util1 libxcb-xfixes0 libxcb-xkb1 libx11-xcb1
    libdbus-1-3 libfontconfig1 fonts-dejavu-core"

if [ "${1:-}" = arm64 ]; then
    packages="$packages g++-aarch64-linux-gnu qemu-user"
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
    for program in c++ Xvfb openbox xdotool; do
        if ! command -v "$program" >/dev/null 2>&1; then
            echo "The tests need $program; install it, and see scripts/system_packages.sh for" >&2
            echo "the Debian names of everything else they use." >&2
            exit 1
        fi
    done
    exit 0
fi

missing=""
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=""
elif sudo -n true 2>/dev/null; then
    as_root="sudo"
else
    echo "The tests need some system packages; run this once:" >&2
    echo "    sudo apt-get install$missing" >&2
    exit 1
fi
echo "Installing the system packages$missing ..."
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing \
    </dev/null >/dev/null
