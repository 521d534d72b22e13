#!/bin/sh
# Makes .venv with everything the program, its tests and its linters need, in the versions of
# constraints.txt. Run by `make install`, which skips it when nothing changed.
set -eu
cd "$(dirname "$0")/.."

find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

python=$(find_python)
if [ -z "$python" ]; then
    echo "Splatscope needs Python 3.11 or newer, and there is none on the PATH." >&2
    echo "On Debian or Ubuntu: sudo apt install python3 python3-venv" >&2
    exit 1
fi

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        echo "$python ($version) has no venv module, which makes .venv. Install it and try again:" >&2
        echo "    sudo apt install python$version-venv" >&2
        exit 1
    fi
    "$python" -m venv --clear .venv
fi

if ! command -v "${CXX:-c++}" >/dev/null 2>&1 && ! command -v g++ >/dev/null 2>&1; then
    echo "The CPU kernels need a C++17 compiler. Install one and try again:" >&2
    echo "    sudo apt install g++" >&2
    exit 1
fi

# A terminal sees pip's own progress; a log one line a group.
quiet=--quiet
if [ -t 1 ]; then
    quiet=
fi

install() {
    echo "Installing $1 ..."
    shift
    # shellcheck disable=SC2086  # nothing where it is empty
    PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install $quiet -c constraints.txt "$@"
}

echo "The packages of constraints.txt go into .venv; the first time takes minutes."
install "the build tools: scikit-build-core, CMake, Ninja" scikit-build-core cmake ninja
install "PyTorch, by far the largest" torch
# The kernels are built in place by scripts/build_kernels.sh, so the package itself needs no CMake.
set -- --no-build-isolation -C wheel.cmake=false
install "the program with Qt, NumPy, SciPy and the rest" "$@" -e .
install "what tests and linters need" "$@" -e '.[dev]'
