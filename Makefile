# The commands of the project; `make help` lists them.

PYTHON_BIN := .venv/bin/python
KERNEL_SOURCES := CMakeLists.txt $(wildcard cuda_rasterizer/cpu/* cuda_rasterizer/include/*)
CXX_FILES := $(wildcard cuda_rasterizer/cpu/* cuda_rasterizer/include/* scripts/make_demo_scene/tracer/*)
CXX_FILES += $(wildcard $(foreach kind,h cpp cu,cuda_rasterizer/cuda/*.$(kind) tests/cuda_emulator/*.$(kind)))
CXX_FILES += $(wildcard tests/cuda_rasterizer/emulated/*.cpp)
SCENE ?= demo
ARGS ?=
SPLIT := -n 2

.DEFAULT_GOAL := help
.PHONY: help install demo test test-arm64 test-avx512 lint format bench screenshot demo-scene

help:  ## list the commands
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

install: .venv/packages.stamp .venv/kernels.stamp  ## make .venv, install everything, build the kernels

.venv/packages.stamp: pyproject.toml constraints.txt scripts/install.sh
	@scripts/install.sh
	@touch $@

.venv/kernels.stamp: $(KERNEL_SOURCES) scripts/build_kernels.sh .venv/packages.stamp
	@scripts/build_kernels.sh
	@touch $@

demo: install  ## train the built-in scene in the window, or without one where there is no display
	@$(PYTHON_BIN) -m app.demo $(ARGS)

test:  ## run the whole test suite by two workers, set-up included; ARGS are for one process
	@scripts/system_packages.sh
	@$(MAKE) --no-print-directory install
	@SPLATSCOPE_REQUIRE_NATIVE=1 $(PYTHON_BIN) -m pytest $(or $(ARGS),$(SPLIT))

test-arm64:  ## compile the CPU kernels for 64-bit ARM and test them under qemu; on Linux on x86-64
	@scripts/system_packages.sh arm64
	@$(MAKE) --no-print-directory install
	@SPLATSCOPE_REQUIRE_NATIVE=1 $(PYTHON_BIN) -m pytest -m arm64 tests/cuda_rasterizer/emulated $(ARGS)

test-avx512:  ## test the CPU kernels of AVX-512 in Bochs, on a Linux kernel there; on Debian on x86-64
	@scripts/system_packages.sh avx512
	@$(MAKE) --no-print-directory install
	@SPLATSCOPE_REQUIRE_NATIVE=1 $(PYTHON_BIN) -m pytest -m avx512 tests/cuda_rasterizer/emulated $(ARGS)

lint: install  ## check style, types, imports between layers, and the format of the C++ sources
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/clang-format --dry-run -Werror $(CXX_FILES)

format: install  ## put Python and C++ into the project's form
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/clang-format -i $(CXX_FILES)

bench: install  ## measure the numbers of the README
	$(PYTHON_BIN) -m benchmarks.readme_numbers minute $(ARGS)
	$(PYTHON_BIN) -m benchmarks.readme_numbers steps $(ARGS)

screenshot:  ## pictures of the window, dark and light, training SCENE on a virtual screen
	@scripts/system_packages.sh
	@$(MAKE) --no-print-directory install
	@$(PYTHON_BIN) -m scripts.screenshot $(SCENE) $(ARGS)

demo-scene: install  ## trace the demo scene anew (three minutes on two cores)
	$(PYTHON_BIN) -m scripts.make_demo_scene
