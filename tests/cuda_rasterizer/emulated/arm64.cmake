# Cross-compiles for 64-bit ARM with the Debian packages that `scripts/system_packages.sh arm64` installs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
