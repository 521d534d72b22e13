#!/bin/sh
# Sees to the system packages that the tests of real windows need: a virtual screen, a window
# manager, synthetic input, software OpenGL and the libraries of Qt's xcb plugin. Installs what is
# missing as root or through a sudo that asks no password; otherwise prints the one command.
#
#   system_packages.sh [arm64] [avx512]     with them also what tests the kernels of other machines
set -eu

packages="g++ xvfb openbox xdotool libgl1-mesa-dri libegl1 libgl1 libxkbcommon-x11-0 libxcb-cursor0
    libxcb-icccm4 libxcb-keysyms1 libxcb-image0 libxcb-render-util0 libxcb-shape0 libxcb-xinerama0
    libxcb-randr0 libxcb-shm0 libxcb-sync1 libxcb-util1 libxcb-xfixes0 libxcb-xkb1 libx11-xcb1
    libdbus-1-3 libfontconfig1 fonts-dejavu-core"

kernel_folder=""
for machine in "$@"; do
    case $machine in
        arm64) packages="$packages g++-aarch64-linux-gnu qemu-user" ;;
        avx512)
            packages="$packages bochs bochs-term"
            kernel_folder=$(dirname "$0")/../build/avx512
            ;;
        *)
            echo "system_packages.sh knows the machines arm64 and avx512, not $machine." >&2
            exit 1
            ;;
    esac
done

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

# The Linux kernel that AVX-512 is emulated with: unpacked into the build folder, never installed.
fetch_kernel() {
    [ -n "$kernel_folder" ] && [ ! -d "$kernel_folder/kernel" ] || return 0
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p')
    if [ -z "$package" ]; then
        echo "AVX-512 is not tested: this system has no package linux-image-cloud-amd64." >&2
        return 0
    fi
    echo "Fetching the kernel of $package ..."
    mkdir -p "$kernel_folder"
    if ! (cd "$kernel_folder" && apt-get download -qq "$package" && dpkg-deb -x "$package"_*.deb unpacked \
        && rm "$package"_*.deb && mv unpacked kernel); then
        echo "AVX-512 is not tested: $package cannot be fetched; try after apt-get update." >&2
    fi
}

missing=""
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    fetch_kernel
    exit 0
fi

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
fetch_kernel
