#!/bin/sh
# Builds the CPU kernels beside the package, cuda_rasterizer/native_lib. A broken build fails here.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
echo "Building the CPU kernels ..."
cmake -S . -B build/native -G Ninja --log-level=WARNING
cmake --build build/native
